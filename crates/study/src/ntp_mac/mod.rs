//! The drafts on MACs for NTP: one bench on this host, kept beside its plan, and rendered with the drafts' nine tables.

pub mod bench;

use authentick_net::clock::unix_seconds;
use authentick_report::mac::MacRecord;
use authentick_report::study::Paper as Stored;
use authentick_report::study::ntp_mac::{Plan as MacPlan, RECORD, Settings as MacSettings, report};

use self::bench::Extent;
use crate::folder::{Folder, Plan};
use crate::{Caller, Error, Paper};

/// The drafts, as the user wants them repeated.
#[derive(Clone, Copy, Debug, Default)]
pub struct NtpMac {
    /// Whether some seconds are to do.
    pub quick: bool,
}

impl Paper for NtpMac {
    type Plan = MacPlan;

    fn plan(&self, caller: &Caller<'_>) -> MacPlan {
        MacPlan {
            paper: Stored::Mac,
            command: caller.program.command.clone(),
            started_unix_s: unix_seconds(),
            settings: MacSettings {
                version: caller.program.version.clone(),
                commit: caller.program.commit.clone(),
                quick: self.quick,
                openssl: bench::openssl_version(),
            },
        }
    }

    fn run(&self, folder: &mut Folder<MacPlan>, caller: &Caller<'_>) -> Result<(), Error> {
        if record(folder)?.is_some() {
            return Ok(());
        }
        let extent = if self.quick { Extent::QUICK } else { Extent::FULL };
        folder.keep(RECORD, &bench::run(extent, caller)?.to_json())
    }
}

impl Plan for MacPlan {
    const PAPER: Stored = Stored::Mac;

    fn has_settings_of(&self, other: &Self) -> bool {
        self.settings == other.settings
    }

    fn files(&self) -> Vec<&str> {
        vec![RECORD]
    }

    fn render(folder: &Folder<Self>) -> Result<[String; 2], Error> {
        let record = record(folder)?.ok_or_else(|| folder.not_carried_out(RECORD))?;
        let report = report(&folder.plan, &record);
        Ok([report.text(), report.page()])
    }
}

/// The record, if it has been measured.
fn record(folder: &Folder<MacPlan>) -> Result<Option<MacRecord>, Error> {
    folder.record(RECORD, MacRecord::from_json)
}
