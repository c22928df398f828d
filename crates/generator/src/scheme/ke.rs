//! Key exchanges alone.

use authentick_proto::client::NtsSession;
use authentick_report::load::{Cause, Operation};

use super::{Nature, Protocol};
use crate::core::{Missing, Settings};
use crate::exchanges::Exchange;
use crate::limits::KE_LATENESS_MAX_NS;
use crate::workload::Workload;
use crate::{Clock, Desk};

/// Key exchanges that no client goes on with.
#[derive(Debug)]
pub(crate) struct Ke;

impl Protocol for Ke {
    const NATURE: Nature = Nature {
        principal: Operation::KeyExchange,
        accompanying: Operation::Transfer,
        lateness_max_ns: KE_LATENESS_MAX_NS,
        measures_transfers: false,
        exchanges_keys: true,
        is_antp: false,
        provision: None,
    };

    fn new(_: &mut Settings) -> Result<Self, Missing> {
        Ok(Ke)
    }

    fn begin<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        measured: bool,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        load.exchanges.want(Exchange { client: None, measured, principal: true, intended_ns });
        Ok(())
    }

    fn established<C: Clock>(
        &mut self,
        load: &mut Workload,
        _: &mut Desk<'_, C>,
        exchange: &Exchange,
        _: NtsSession,
        _: u64,
    ) {
        load.streams.operation_ended(exchange.measured);
    }

    fn not_established(&mut self, load: &mut Workload, exchange: &Exchange, _: u64) {
        load.streams.operation_ended(exchange.measured);
    }
}
