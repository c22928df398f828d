//! Files that hold what is to be rendered.

use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The text of a golden file.
pub(crate) fn read(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares what was rendered with a golden file, or writes the file if that is asked for.
pub(crate) fn check(name: &str, rendered: &str) {
    if std::env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path(name), rendered).expect("golden files can be written");
    }
    let golden = read(name);
    if rendered == golden {
        return;
    }
    let mut pairs = golden.lines().zip(rendered.lines());
    let same = pairs.by_ref().take_while(|(expected, found)| expected == found).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
    panic!(
        "{} differs from what is rendered now, first in line {}:\n- {}\n+ {}\n\
         If that is meant, run again with AUTHENTICK_UPDATE_GOLDEN=1 and look at the difference.",
        path(name).display(),
        same + 1,
        line(&golden),
        line(rendered)
    );
}
