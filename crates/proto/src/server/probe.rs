//! Watching the stages of the responder, at no cost where nobody watches.

use authentick_wire::datagram::Datagram;

/// A stage that a batch goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Octets become packets, and fields are located.
    Parse,
    /// Access and rate are checked.
    Admit,
    /// Cookies are opened.
    Open,
    /// Requests are verified.
    Verify,
    /// Fresh cookies are sealed.
    Fresh,
    /// Headers are built. Parse and build together are the d_SNTP of "Experimental Analysis of the Performance and
    /// Scalability of Network Time Security for the Network Time Protocol", section III.
    Build,
    /// Responses are sealed. Open, verify and seal together are that paper's d_SNTS.
    Seal,
}

impl Stage {
    /// Every stage, in the order in which a batch goes through them.
    pub const ALL: [Stage; 7] =
        [Stage::Parse, Stage::Admit, Stage::Open, Stage::Verify, Stage::Fresh, Stage::Build, Stage::Seal];
}

/// Told when a batch starts and when a stage ends. All methods are empty for `()`, and vanish.
pub trait Probe {
    /// A batch is about to go through the stages.
    fn start(&mut self, batch: &[Datagram<'_>]);
    /// `stage` has just ended; `count` datagrams were worked on in it.
    fn end_of(&mut self, stage: Stage, count: usize);
    /// The batch is done; responses are ready.
    fn finish(&mut self, batch: &[Datagram<'_>]);
}

impl Probe for () {
    #[inline(always)]
    fn start(&mut self, _: &[Datagram<'_>]) {}
    #[inline(always)]
    fn end_of(&mut self, _: Stage, _: usize) {}
    #[inline(always)]
    fn finish(&mut self, _: &[Datagram<'_>]) {}
}
