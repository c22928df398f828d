//! Key exchanges alone.

use authentick_report::load::Operation;

use super::plain::Plain;
use super::{Begun, Nature, Protocol};
use crate::Clock;
use crate::core::{Missing, Settings};
use crate::exchanges::Exchange;
use crate::workload::Call;

/// Key exchanges whose keys no client uses.
#[derive(Debug)]
pub(crate) struct Ke;

impl Protocol for Ke {
    const NATURE: Nature = Nature {
        principal: Operation::KeyExchange,
        accompanying: Operation::Transfer,
        measures_transfers: false,
        exchanges_keys: true,
        ..Plain::NATURE
    };

    fn new(_: &mut Settings) -> Result<Self, Missing> {
        Ok(Ke)
    }

    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun {
        call.load.exchanges.want(Exchange { client: None, measured, principal: true, intended_ns });
        Ok(())
    }
}
