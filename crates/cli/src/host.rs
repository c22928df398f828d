//! What a run record says about the program.

/// The commit that this program was built from.
pub(crate) const COMMIT: &str = env!("AUTHENTICK_COMMIT");
/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The command line as it was typed, with quotes where a shell needs them.
pub(crate) fn command() -> String {
    let plain = |word: &String| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@%+[]".contains(c))
    };
    let quoted = |word: String| match plain(&word) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("authentick".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
