//! All three phases, one after the other, as of a client that knows nothing yet.

use authentick_report::load::{Cause, Operation};

use super::steps::Speech;
use super::{Aim, Goal, Nature};
use crate::limits::KE_LATENESS_MAX_NS;
use crate::workload::Workload;
use crate::{Clock, Desk};

/// Whole runs of the protocol. Each costs a thread public-key work of its own.
#[derive(Debug)]
pub(crate) struct Full;

impl Aim for Full {
    const NATURE: Nature =
        Nature { principal: Operation::Run, lateness_max_ns: KE_LATENESS_MAX_NS, ..super::NATURE };

    fn push<C: Clock>(
        speech: &mut Speech,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        speech.push_negotiation(load, desk, client, Goal::Run, intended_ns);
        Ok(())
    }
}
