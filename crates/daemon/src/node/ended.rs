//! End of a node.

/// How a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every thread had worked until it was told to stop.
    Cleanly,
    /// A thread had failed before.
    Failed,
    /// A file operation does not return; what it is for.
    Hanging(String),
}

impl Ended {
    pub(super) const fn of(is_clean: bool) -> Self {
        if is_clean { Ended::Cleanly } else { Ended::Failed }
    }
}
