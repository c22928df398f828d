//! NTP under a symmetric key, which all clients share.

use authentick_crypto::mac::{tag_batch, verify_batch};
use authentick_proto::client::{Exchange, NtsSession};
use authentick_proto::symmetric::SymmetricKey;
use authentick_report::load::Cause;
use authentick_wire::time::NtpTime;

use super::plain::Plain;
use super::{Asked, Found, Nature, Protocol, Verdict, transfer};
use crate::arrivals::Inspected;
use crate::core::{Missing, Settings};
use crate::outbox::Unfinished;
use crate::workload::Workload;
use crate::{Buffer, Clock, Desk};

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

    fn begin<C: Clock>(
        &mut self,
        load: &mut Workload,
        desk: &mut Desk<'_, C>,
        measured: bool,
        intended_ns: u64,
    ) -> Result<(), Cause> {
        let client = load.roster.choose(measured, |_, _| true).ok_or(Cause::LocalPort)?;
        let begun_ns = desk.clock.monotonic_ns();
        let (exchange, untagged) = Exchange::mac_untagged(&self.key, &mut load.entropy, desk.out);
        let request = transfer(load, exchange, client, [intended_ns, begun_ns]);
        load.push(request, untagged.size(), Some(Unfinished::Tagged(untagged)), false);
        Ok(())
    }

    fn finish<'a>(&self, load: &Workload, buffers: impl Iterator<Item = &'a mut Buffer>) {
        tag_batch(load.outbox.pending().iter().zip(buffers).filter_map(|(request, out)| {
            match &request.unfinished {
                Some(Unfinished::Tagged(untagged)) => Some(untagged.job(&self.key, out)),
                Some(Unfinished::Sealed { .. }) | None => None,
            }
        }));
    }

    fn inspect<C: Clock>(&mut self, asked: &mut Asked, octets: &[u8], _: NtpTime, _: &C) -> Verdict {
        let Asked::Ntp(exchange) = asked else { return Verdict::Early };
        match exchange.inspect_mac(octets, &self.key) {
            Ok(candidate) => Verdict::Candidate(Found::Mac(candidate)),
            Err(check) => Verdict::refused(check),
        }
    }

    fn verify<'a, C: Clock>(
        &self,
        _: &Workload,
        datagrams: impl Iterator<Item = &'a mut [u8]>,
        inspected: &mut [Option<Inspected>],
        _: &C,
    ) -> u64 {
        verify_batch(datagrams.zip(inspected).filter_map(|(datagram, inspected)| {
            let Some(Inspected { candidate: Found::Mac(candidate), genuine, .. }) = inspected else {
                return None;
            };
            candidate.job(datagram, &self.key, genuine)
        }));
        0
    }

    fn conclude(
        &mut self,
        asked: &mut Asked,
        inspected: &Inspected,
        _octets: &mut [u8],
        _session: Option<&mut NtsSession>,
        _crypto_ns: u64,
    ) -> Verdict {
        let (Asked::Ntp(exchange), Found::Mac(candidate)) = (asked, &inspected.candidate) else {
            return Verdict::Early;
        };
        Verdict::of(exchange.conclude_mac(candidate, inspected.genuine))
    }
}
