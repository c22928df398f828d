//! Outcomes that are counted: an enum, the names of its members in metrics, and the list of all of them.

/// Defines an enum of outcomes, each with its name in metrics (`Served = "served"`), and with them `ALL` and `label`.
#[macro_export]
macro_rules! outcomes {
    (
        $(#[$about:meta])+
        pub enum $outcome:ident {
            $($(#[$doc:meta])+ $name:ident = $label:literal,)+
        }
    ) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum $outcome {
            $($(#[$doc])+ $name,)+
        }

        impl $outcome {
            /// Every outcome, in the order of the counters.
            pub const ALL: &[$outcome] = &[$($outcome::$name,)+];

            /// The name in metrics: lower case with underscores.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $($outcome::$name => $label,)+
                }
            }
        }
    };
}
