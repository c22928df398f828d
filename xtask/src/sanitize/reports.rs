//! What AddressSanitizer reports: a file for each process in which it finds an error.
//!
//! So an error is found whichever process made it, whoever started that, and whatever exit code a test expects.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most lines of a report that are shown; the rest is the shadow memory and its legend.
const LINES_MAX: usize = 60;

/// A folder of reports.
pub(super) struct Reports(PathBuf);

impl Reports {
    /// An empty folder, in which servers can write that have become another user.
    pub(super) fn in_folder(folder: &Path) -> Result<Self, String> {
        let made = fs::create_dir_all(folder)
            .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        let reports = Reports(folder.to_owned());
        reports.take()?;
        Ok(reports)
    }

    /// For `ASAN_OPTIONS`. The exit code is one that no test expects.
    pub(super) fn options(&self) -> String {
        format!("log_path={}:exitcode=99:detect_leaks=1", self.0.join("report").display())
    }

    /// The reports since the last call, each with the name of its file.
    pub(super) fn take(&self) -> Result<Vec<String>, String> {
        let failed = |error| format!("{}: {error}", self.0.display());
        let mut taken = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let octets = fs::read(&path).map_err(failed)?;
            fs::remove_file(&path).map_err(failed)?;
            let text = String::from_utf8_lossy(&octets);
            let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
            taken.push(format!("{}:\n{}\n", path.display(), lines.join("\n")));
        }
        taken.sort();
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_taken_once_and_those_of_an_earlier_run_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reports/report.1");
        fs::create_dir(folder.path().join("reports")).unwrap();
        fs::write(&file, "of an earlier run").unwrap();
        let reports = Reports::in_folder(&folder.path().join("reports")).unwrap();
        assert!(!file.exists());
        fs::write(&file, format!("ERROR: heap-use-after-free\n{}", "line\n".repeat(500))).unwrap();
        let taken = reports.take().unwrap();
        assert!(taken.len() == 1 && taken[0].contains("heap-use-after-free"), "{taken:?}");
        assert_eq!(taken[0].lines().count(), 1 + LINES_MAX);
        assert_eq!(reports.take().unwrap(), Vec::<String>::new());
    }
}
