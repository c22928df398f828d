//! Certificates of the key exchange on the page of metrics, each by the path of its chain.

use std::fmt;

use super::Page;
use crate::certificates::Served;
use crate::renewal::Reloads;

/// A figure of each certificate: how its name ends, what it means, and what it is.
type Figure<T> = (&'static str, &'static str, fn(&Reloads) -> T);

impl Page<'_, '_> {
    pub(super) fn certificates(&mut self, all: &[Served]) -> fmt::Result {
        let paths: Vec<String> =
            all.iter().map(|served| served.pair.certificate_chain.display().to_string()).collect();
        let each = || all.iter().zip(&paths);
        let ends = each().filter_map(|(served, path)| {
            let name = served.names().first().copied().unwrap_or_default();
            let labels = [("certificate", path.as_str()), ("name", name)];
            Some((labels, served.certificate()?.not_after as f64))
        });
        let help = "When the certificate in force ends, in Unix seconds";
        self.gauges("nts_ke_certificate_expiry_timestamp_seconds", help, ends)?;
        let counters: [Figure<u64>; 2] = [
            ("reloads", "Times that a renewed certificate was put in force since the start", |reloads| {
                reloads.done.get()
            }),
            (
                "reload_failures",
                "Times that files with another certificate or key were refused; the old ones stay in force",
                |reloads| reloads.failed.get(),
            ),
        ];
        for (name, help, value) in counters {
            let values = each().map(|(served, path)| ([("certificate", &**path)], value(&served.reloads)));
            self.counters(&format!("nts_ke_certificate_{name}"), help, values)?;
        }
        let last = each()
            .map(|(served, path)| ([("certificate", &**path)], served.reloads.last().unwrap_or(0) as f64));
        let help =
            "When a renewed certificate was last put in force since the start, in Unix seconds; 0 if never";
        self.gauges("nts_ke_certificate_reloaded_timestamp_seconds", help, last)?;
        let refused =
            each().map(|(served, path)| ([("certificate", &**path)], f64::from(u8::from(served.is_refused))));
        let help = "Whether the files hold something that was refused, so that an older certificate serves";
        self.gauges("nts_ke_certificate_refused", help, refused)
    }
}
