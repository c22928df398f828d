//! The drafts on MACs for NTP: one bench on this host, kept beside its plan, and rendered with the drafts' nine tables.

pub mod bench;

use authentick_net::clock::unix_seconds;
use authentick_report::Report;
use authentick_report::mac::MacRecord;
use authentick_report::study::Paper as Stored;
use authentick_report::study::ntp_mac::{Plan as MacPlan, RECORD, Settings as MacSettings, report};

use self::bench::Extent;
use crate::folder::Folder;
use crate::single::{self, Single};
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
        if single::record(folder)?.is_some() {
            return Ok(());
        }
        let extent = if self.quick { Extent::QUICK } else { Extent::FULL };
        folder.keep(RECORD, &bench::run(extent, caller)?.to_json())
    }
}

impl Single for MacSettings {
    const RECORD: &'static str = RECORD;
    type Record = MacRecord;

    fn report(plan: &MacPlan, record: &MacRecord) -> Report {
        report(plan, record)
    }
}
