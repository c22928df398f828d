//! NTP without authentication.

use authentick_proto::client::Exchange;
use authentick_report::load::{Cause, Operation};

use super::{Begun, Nature, Protocol, transfer};
use crate::Clock;
use crate::core::{Missing, Settings};
use crate::limits::FLIGHT_COUNT_MAX;
use crate::workload::Call;

/// Plain requests for time.
#[derive(Debug)]
pub(crate) struct Plain;

impl Protocol for Plain {
    const NATURE: Nature = Nature {
        principal: Operation::Transfer,
        accompanying: Operation::KeyExchange,
        measures_transfers: true,
        exchanges_keys: false,
        is_antp: false,
        provision: None,
        flight_count_max: FLIGHT_COUNT_MAX,
    };

    fn new(_: &mut Settings) -> Result<Self, Missing> {
        Ok(Plain)
    }

    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun {
        let load = &mut *call.load;
        let client = load.roster.choose(measured, |_, _| true).ok_or(Cause::LocalPort)?;
        let begun_ns = call.clock.monotonic_ns();
        let (exchange, size) = Exchange::plain(&mut load.entropy, call.out);
        let request = transfer(load, exchange, client, [intended_ns, begun_ns]);
        load.push(request, size, None, false);
        Ok(())
    }
}
