//! A stored record of any kind: what `authentick report` is given.

use std::mem::discriminant;

use crate::load::{self, LoadRecord};
use crate::mac::{self, MacRecord};
use crate::render::Report;
use crate::run::{self, RunRecord};
use crate::stored::{self, Error, Stored};
use crate::study::antp::{self, AntpRecord};
use crate::study::field::{self, FieldRecord};
use crate::study::nts::{
    OperationsRecord, RatesRecord, RungRecord, ScaleRecord, SessionsRecord, UnloadedRecord, single,
};

/// What a file holds, by its `format`. Boxed, as records are large and of different sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A load run.
    Load(Box<LoadRecord>),
    /// A run of the demo.
    Demo(Box<RunRecord>),
    /// A bench of MACs.
    Mac(Box<MacRecord>),
    /// A study of ANTP.
    Antp(Box<AntpRecord>),
    /// A study of what authentication costs.
    Field(Box<FieldRecord>),
    /// One client of the study of NTS.
    NtsUnloaded(Box<UnloadedRecord>),
    /// What the server of a ladder serves, of the study of NTS.
    NtsScale(Box<ScaleRecord>),
    /// A step of a ladder, of the study of NTS.
    NtsRung(Box<RungRecord>),
    /// Operations alone, of the study of NTS.
    NtsOperations(Box<OperationsRecord>),
    /// What a core serves of a pattern, of the study of NTS.
    NtsSessions(Box<SessionsRecord>),
    /// Transfers alone past the paper's rates, of the study of NTS.
    NtsRates(Box<RatesRecord>),
}

/// The formats, in the order of [`Record`].
const FORMATS: [&str; 12] = [
    LoadRecord::KNOWN[0],
    LoadRecord::KNOWN[1],
    RunRecord::FORMAT,
    MacRecord::FORMAT,
    AntpRecord::FORMAT,
    FieldRecord::FORMAT,
    UnloadedRecord::FORMAT,
    ScaleRecord::FORMAT,
    RungRecord::FORMAT,
    OperationsRecord::FORMAT,
    SessionsRecord::FORMAT,
    RatesRecord::FORMAT,
];

const _: () = assert!(LoadRecord::KNOWN.len() == 2, "the list of formats has each version of a load record");

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// If the text is no JSON, is in none of the formats, lacks a field, or holds what cannot be.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let found = stored::format_of(text).map_err(|error| Error::Json { what: "a record", error })?;
        match found.as_str() {
            load if LoadRecord::KNOWN.contains(&load) => {
                stored::read(text).map(|record| Record::Load(Box::new(record)))
            }
            RunRecord::FORMAT => stored::read(text).map(|record| Record::Demo(Box::new(record))),
            MacRecord::FORMAT => stored::read(text).map(|record| Record::Mac(Box::new(record))),
            AntpRecord::FORMAT => stored::read(text).map(|record| Record::Antp(Box::new(record))),
            FieldRecord::FORMAT => stored::read(text).map(|record| Record::Field(Box::new(record))),
            UnloadedRecord::FORMAT => stored::read(text).map(|record| Record::NtsUnloaded(Box::new(record))),
            ScaleRecord::FORMAT => stored::read(text).map(|record| Record::NtsScale(Box::new(record))),
            RungRecord::FORMAT => stored::read(text).map(|record| Record::NtsRung(Box::new(record))),
            OperationsRecord::FORMAT => {
                stored::read(text).map(|record| Record::NtsOperations(Box::new(record)))
            }
            SessionsRecord::FORMAT => stored::read(text).map(|record| Record::NtsSessions(Box::new(record))),
            RatesRecord::FORMAT => stored::read(text).map(|record| Record::NtsRates(Box::new(record))),
            _ => Err(Error::Format { found, known: &FORMATS }),
        }
    }

    /// The load run that it is.
    ///
    /// # Errors
    /// If it is something else: the record again.
    pub fn into_load(self) -> Result<Box<LoadRecord>, Record> {
        match self {
            Record::Load(record) => Ok(record),
            other @ (Record::Demo(_)
            | Record::Mac(_)
            | Record::Antp(_)
            | Record::Field(_)
            | Record::NtsUnloaded(_)
            | Record::NtsScale(_)
            | Record::NtsRung(_)
            | Record::NtsOperations(_)
            | Record::NtsSessions(_)
            | Record::NtsRates(_)) => Err(other),
        }
    }

    /// What it is, for a sentence.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match self {
            Record::Load(_) => "a load run",
            Record::Demo(_) => "a run of the demo",
            Record::Mac(_) => "a bench of MACs",
            Record::Antp(_) => "a study of ANTP",
            Record::Field(_) => "a study of what authentication costs",
            Record::NtsUnloaded(_) => "one client of a study of NTS",
            Record::NtsScale(_) => "a scale of a study of NTS",
            Record::NtsRung(_) => "a step of a study of NTS",
            Record::NtsOperations(_) => "operations alone of a study of NTS",
            Record::NtsSessions(_) => "sessions of a study of NTS",
            Record::NtsRates(_) => "transfers alone of a study of NTS",
        }
    }

    /// The report on it alone.
    #[must_use]
    pub fn report(&self) -> Report {
        match self {
            Record::Load(record) => load::report(&[record]),
            Record::Demo(record) => run::report(record),
            Record::Mac(record) => mac::report(record),
            Record::Antp(record) => antp::report(record),
            Record::Field(record) => field::report(record),
            Record::NtsUnloaded(record) => single::of_unloaded(record),
            Record::NtsScale(record) => single::of_scale(record),
            Record::NtsRung(record) => single::of_rung(record),
            Record::NtsOperations(record) => single::of_operations(record),
            Record::NtsSessions(record) => single::of_sessions(record),
            Record::NtsRates(record) => single::of_rates(record),
        }
    }
}

/// A page of load runs, or of one record of another kind.
///
/// # Errors
/// If these do not belong on one page: which do.
pub fn page(loads: &[&LoadRecord], others: &[&Record]) -> Result<String, String> {
    let is_antp = |record: &&&Record| matches!(record, Record::Antp(_));
    let is_mac = |record: &&&Record| matches!(record, Record::Mac(_));
    let are_alike =
        loads.is_empty() && others.windows(2).all(|pair| discriminant(pair[0]) == discriminant(pair[1]));
    let alone = others.iter().find(is_antp).or_else(|| others.iter().find(is_mac));
    Err(match (others, alone) {
        ([], _) => return Ok(load::report(loads).page()),
        ([other], _) if are_alike => return Ok(other.report().page()),
        ([first, ..], _) if are_alike => {
            format!(
                "one page holds {}; render each with --html of its own",
                first.what().replacen('a', "one", 1)
            )
        }
        (_, Some(alone)) => format!("one page holds {} alone; render each kind on its own", alone.what()),
        (_, None) => {
            "one page holds load runs or a run of the demo, not both; render each kind on its own".to_owned()
        }
    })
}
