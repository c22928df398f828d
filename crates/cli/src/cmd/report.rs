//! `authentick report`: stored runs to text, to a page, and against an older run.

use std::fs;
use std::path::Path;

use authentick_report::load::compare::against;
use authentick_report::load::{LoadFormat, LoadRecord, html as load_html, text};
use authentick_report::mac::{self, MacFormat, MacRecord};
use authentick_report::study::antp::{self, AntpFormat, AntpRecord};
use authentick_report::{Format, RunRecord, html, stored, table};

use crate::args::Report;
use crate::exit::{Exit, Failure};
use crate::files::{unreadable, unwritable, wrong};
use crate::output;

/// What a file holds, by its `format`. Boxed, as records are large and of different sizes.
enum Record {
    Load(Box<LoadRecord>),
    Demo(Box<RunRecord>),
    Mac(Box<MacRecord>),
    Antp(Box<AntpRecord>),
}

pub(crate) fn run(arguments: &Report) -> Result<Exit, Failure> {
    let mut loads = Vec::new();
    let mut demos = Vec::new();
    let mut macs = Vec::new();
    let mut antps = Vec::new();
    let mut out = String::new();
    for path in &arguments.runs {
        if !out.is_empty() {
            out.push('\n');
        }
        match read(path)? {
            Record::Load(record) => {
                out += &text::summary(&record);
                loads.push((path, record));
            }
            Record::Demo(record) => {
                out += &table::text(&record);
                demos.push((path, record));
            }
            Record::Mac(record) => {
                out += &mac::text::bench(&record);
                macs.push((path, record));
            }
            Record::Antp(record) => {
                out += &antp::text::study(&record);
                antps.push((path, record));
            }
        }
    }
    let old = arguments.against.as_deref().map(|path| load(path, "--against")).transpose()?;
    let demo = demos.first().map(|(path, _)| (path, "a run of the demo"));
    let mac = macs.first().map(|(path, _)| (path, "a bench of MACs"));
    let antp = antps.first().map(|(path, _)| (path, "a study of ANTP"));
    let other = demo.or(mac).or(antp);
    if let (Some(_), Some((path, what))) = (&old, other) {
        let problem = format!("--against compares load runs, and this is {what}");
        return Err(wrong(path, &problem, "name a load record"));
    }
    // Without an older run the others are compared with the first.
    let (base, compared) = match (&old, loads.split_first()) {
        (Some(old), _) => (Some(old), &loads[..]),
        (None, Some(((_, first), others))) => (Some(first), others),
        (None, None) => (None, &loads[..]),
    };
    let mut failed = Vec::new();
    if let Some(base) = base {
        for (path, record) in compared {
            let comparison = against(record, base);
            out += &format!("\n{}:\n{}", path.display(), comparison.text());
            if let Some(least) = arguments.fail_below.filter(|&least| comparison.below(least)) {
                let found =
                    comparison.ratio().map_or_else(|| "unknown".to_owned(), |ratio| format!("{ratio:.3}"));
                failed.push(format!("{}: the ratio is {found}, less than {least}", path.display()));
            }
        }
    }
    if let Some(file) = &arguments.html {
        let records: Vec<&LoadRecord> =
            old.iter().chain(loads.iter().map(|(_, load)| load)).map(|load| &**load).collect();
        let demos: Vec<&RunRecord> = demos.iter().map(|(_, demo)| &**demo).collect();
        let macs: Vec<&MacRecord> = macs.iter().map(|(_, bench)| &**bench).collect();
        let antps: Vec<&AntpRecord> = antps.iter().map(|(_, study)| &**study).collect();
        fs::write(file, page(&records, &demos, &macs, &antps)?)
            .map_err(|error| unwritable(file, &error, "name another file with --html"))?;
        out += &format!("\nreport: {}\n", file.display());
    }
    output::result(&out);
    match failed.is_empty() {
        true => Ok(Exit::Done),
        false => Err(Failure::new(Exit::GATE_FAILED, format!("the gate failed: {}", failed.join("; ")))),
    }
}

/// A page holds load runs, or one run of the demo, or one bench of MACs, or one study of ANTP.
fn page(
    loads: &[&LoadRecord],
    demos: &[&RunRecord],
    macs: &[&MacRecord],
    antps: &[&AntpRecord],
) -> Result<String, Failure> {
    match (loads, demos, macs, antps) {
        ([], [demo], [], []) => Ok(html::page(demo)),
        ([], [], [bench], []) => Ok(mac::html::bench(bench)),
        ([], [], [], [study]) => Ok(antp::html::study(study)),
        ([], _, [], []) => {
            Err(usage("one page holds one run of the demo; render each with --html of its own"))
        }
        ([], [], _, []) => Err(usage("one page holds one bench of MACs; render each with --html of its own")),
        ([], [], [], _) => Err(usage("one page holds one study of ANTP; render each with --html of its own")),
        (_, [], [], []) => Ok(load_html::page(loads)),
        (_, _, [], []) => {
            Err(usage("one page holds load runs or a run of the demo, not both; render each kind on its own"))
        }
        (_, _, _, []) => Err(usage("one page holds a bench of MACs alone; render each kind on its own")),
        (_, _, _, _) => Err(usage("one page holds a study of ANTP alone; render each kind on its own")),
    }
}

fn usage(message: &str) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// A load record that an option names.
fn load(path: &Path, option: &str) -> Result<Box<LoadRecord>, Failure> {
    let what = match read(path)? {
        Record::Load(record) => return Ok(record),
        Record::Demo(_) => "a run of the demo",
        Record::Mac(_) => "a bench of MACs",
        Record::Antp(_) => "a study of ANTP",
    };
    let problem = format!("this is {what}, and only load runs are compared");
    Err(wrong(path, &problem, &format!("name a load record with {option}")))
}

/// Reads a record of any kind.
fn read(path: &Path) -> Result<Record, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        unreadable(path, &error, "a record is JSON in UTF-8; name one", "name a file that exists")
    })?;
    let no_record = |error: &dyn std::fmt::Display| {
        let remedy = "name a record that authentick wrote: of load with --record FILE, the demo's run.json, what bench \
                      mac --json printed, or the run-antp.json of a study";
        wrong(path, &error.to_string(), remedy)
    };
    let format = stored::format_of(&text).map_err(|error| no_record(&error))?;
    let load_format = LoadFormat::V1.name();
    if format == load_format {
        let record = LoadRecord::from_json(&text).map_err(|error| no_record(&error))?;
        Ok(Record::Load(Box::new(record)))
    } else if format == Format::V1.name() {
        let record = RunRecord::from_json(&text).map_err(|error| no_record(&error))?;
        Ok(Record::Demo(Box::new(record)))
    } else if format == MacFormat::V1.name() {
        let record = MacRecord::from_json(&text).map_err(|error| no_record(&error))?;
        Ok(Record::Mac(Box::new(record)))
    } else if format == AntpFormat::V1.name() {
        let record = AntpRecord::from_json(&text).map_err(|error| no_record(&error))?;
        Ok(Record::Antp(Box::new(record)))
    } else {
        let problem = format!(
            "format: {format:?} is not known here; this version reads {load_format:?}, {:?}, {:?} and {:?}",
            Format::V1.name(),
            MacFormat::V1.name(),
            AntpFormat::V1.name()
        );
        Err(wrong(path, &problem, "render it with the version that wrote it, or a later one"))
    }
}
