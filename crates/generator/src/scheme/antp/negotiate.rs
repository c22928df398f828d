//! Phase 1: m1 and m2, until the certificate chain is complete.

use authentick_report::load::{Cause, Operation};

use super::steps::Speech;
use super::{Aim, Goal, Nature};
use crate::workload::Workload;
use crate::{Clock, Desk};

/// Negotiations.
#[derive(Debug)]
pub(crate) struct Negotiate;

impl Aim for Negotiate {
    const NATURE: Nature = Nature { principal: Operation::Negotiation, ..super::NATURE };

    fn push<C: Clock>(
        speech: &mut Speech,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        client: u32,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        speech.push_negotiation(load, desk, client, Goal::Negotiation, intended_ns);
        Ok(())
    }
}
