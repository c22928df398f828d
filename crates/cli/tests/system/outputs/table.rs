//! Every argument that names an output: the command, without the scheme of a load, and the argument as its user knows
//! it. A test of the command line compares this list with clap's definition.

/// Files, each of which the command writes whole or as it grows.
pub(crate) const FILES: [(&str, &str); 9] = [
    ("bench mac", "--html"),
    ("game report", "--html"),
    ("game trace", "--svg"),
    ("load", "--csv"),
    ("load", "--html"),
    ("load", "--record"),
    ("load", "--spans"),
    ("report", "--html"),
    ("stress", "REPORT"),
];

/// Folders, in which the command chooses the names.
pub(crate) const FOLDERS: [(&str, &str); 5] = [
    ("certificates lab", "--out"),
    ("demo", "--out"),
    ("manual", "DIRECTORY"),
    ("study render", "DIR"),
    ("study run", "--out"),
];
