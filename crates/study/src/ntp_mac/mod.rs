//! The drafts on MACs for NTP: one bench on this host, kept beside its plan, and rendered with the drafts' nine tables.

pub mod bench;

use authentick_report::Report;
use authentick_report::mac::MacRecord;
use authentick_report::study::Task;
use authentick_report::study::ntp_mac::{BENCH, Settings as MacSettings, report};

use self::bench::Extent;
use crate::folder::Folder;
use crate::paper::{Found, Planned};
use crate::{Caller, Error, Paper};

/// The drafts, as the user wants them repeated.
#[derive(Clone, Copy, Debug, Default)]
pub struct NtpMac {
    /// Whether some seconds are to do.
    pub quick: bool,
}

impl Paper for NtpMac {
    type Settings = MacSettings;
    type Rig<'a> = Caller<'a>;

    fn plan(&self) -> Planned<MacSettings> {
        let settings = MacSettings { quick: self.quick, openssl: bench::openssl_version() };
        Planned { tasks: settings.tasks(), found: (), settings }
    }

    fn obstacles(&self) -> Vec<String> {
        let without = "OpenSSL is not measured: this program was built without it (--features openssl).";
        bench::openssl_version().is_none().then(|| without.to_owned()).into_iter().collect()
    }

    fn rig<'a>(&'a self, _: &mut Folder<MacSettings>, caller: Caller<'a>) -> Result<Caller<'a>, Error> {
        Ok(caller)
    }

    /// There is nothing between the bench's beginning and its end that could be kept.
    fn run(&self, _: &Task, caller: &mut Caller<'_>, _: &mut Folder<MacSettings>) -> Result<Found, Error> {
        let extent = if self.quick { Extent::QUICK } else { Extent::FULL };
        let record = bench::run(extent, caller)?.to_json();
        if caller.says_stop() {
            return Ok(Found::Stopped(Some(record)));
        }
        Ok(Found::Measured { record, line: "the bench of MACs".to_owned() })
    }

    fn render(folder: &Folder<MacSettings>) -> Result<Report, Error> {
        let record = folder.record_of(BENCH, MacRecord::from_json)?;
        Ok(report(&folder.plan, record.as_ref()))
    }
}
