//! NTP under a symmetric key, which all clients share.

use authentick_crypto::run_batch;
use authentick_proto::client::Exchange;
use authentick_proto::symmetric::SymmetricKey;
use authentick_report::load::Cause;
use authentick_wire::time::NtpTime;

use super::plain::Plain;
use super::{Asked, Begun, Found, Nature, Protocol, Verdict, transfer};
use crate::arrivals::Inspected;
use crate::core::{Missing, Settings};
use crate::outbox::Unfinished;
use crate::workload::{Call, Workload};
use crate::{Buffer, Clock};

/// Requests for time with a MAC.
#[derive(Debug)]
pub(crate) struct Mac {
    key: SymmetricKey,
}

impl Protocol for Mac {
    const NATURE: Nature = Plain::NATURE;

    fn new(settings: &mut Settings) -> Result<Self, Missing> {
        Ok(Mac { key: settings.key.take().ok_or(Missing::Key)? })
    }

    fn begin(&mut self, call: &mut Call<'_, impl Clock>, measured: bool, intended_ns: u64) -> Begun {
        let load = &mut *call.load;
        let client = load.roster.choose(measured, |_, _| true).ok_or(Cause::LocalPort)?;
        let begun_ns = call.clock.monotonic_ns();
        let (exchange, untagged) = Exchange::mac_untagged(&self.key, &mut load.entropy, call.out);
        let request = transfer(load, exchange, client, [intended_ns, begun_ns]);
        load.push(request, untagged.size(), Some(Unfinished::Tagged(untagged)), false);
        Ok(())
    }

    fn finish<'a>(&self, load: &Workload, buffers: impl Iterator<Item = &'a mut Buffer>) {
        run_batch(load.outbox.pending.iter().zip(buffers).filter_map(|(request, out)| {
            match &request.unfinished {
                Some(Unfinished::Tagged(untagged)) => Some(untagged.job(&self.key, out)),
                Some(Unfinished::Sealed(_)) | None => None,
            }
        }));
    }

    fn inspect(&self, asked: &mut Asked, octets: &[u8], _: NtpTime, _: &impl Clock) -> Verdict {
        let Asked::Ntp(exchange) = asked else { return Verdict::Early };
        Verdict::inspected(exchange.inspect_mac(octets, &self.key), Found::Mac)
    }

    fn verify<'a>(
        &self,
        _: &Workload,
        candidates: impl Iterator<Item = (&'a mut [u8], &'a mut Inspected)>,
        _: &impl Clock,
    ) -> u64 {
        run_batch(candidates.filter_map(|(datagram, inspected)| match &inspected.candidate {
            Found::Mac(candidate) => candidate.job(datagram, &self.key, &mut inspected.genuine),
            Found::Ntp(_) | Found::Antp(_) => None,
        }));
        0
    }
}
