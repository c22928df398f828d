//! The first step: what a datagram is, and which scheme it is for. It is parsed here, and nowhere else.

use authentick_wire::Reason;
use authentick_wire::datagram::Datagram;
use authentick_wire::header::{Header, Mode};
use authentick_wire::nts::NtsFields;
use authentick_wire::packet::{Packet, Trailer};

use super::antp::Antp;
use super::build::Echo;
use super::mac::Mac;
use super::nts::Nts;
use super::outcome::Outcome;
use super::{Scheme, Slot};

/// Parses the datagram with the number `index` of its group, writes down what any response needs of it, and has its
/// scheme write down the rest; without `antp`, its fields are ignored.
#[inline(always)]
pub(super) fn claim(
    index: usize,
    slot: &mut Slot,
    (nts, mac, antp): (&mut Nts, &mut Mac, Option<&mut Antp>),
    datagram: &Datagram<'_>,
) -> Result<Scheme, Outcome> {
    if datagram.to_many {
        return Err(Outcome::NotUnicast);
    }
    if datagram.truncated {
        return Err(Outcome::Malformed);
    }
    let packet = match Packet::parse(datagram.request) {
        Ok(packet) => packet,
        Err(malformed) if malformed.reason == Reason::Version => return Err(Outcome::Version),
        // Such a MAC is never right, and its sender has no other way to learn that it is too long.
        Err(_) => Packet::with_overlong_mac(datagram.request).ok_or(Outcome::Malformed)?,
    };
    let mode = match packet.mode() {
        //= rfc5905#9.2-4
        Mode::Client => Mode::Server,
        //= rfc5905#9.2-14, rfc9769#3-1
        Mode::SymmetricActive => Mode::SymmetricPassive,
        // Answering an answer would let two servers talk for ever.
        //= rfc5905#9.2-5
        Mode::Reserved
        | Mode::SymmetricPassive
        | Mode::Server
        | Mode::Broadcast
        | Mode::Control
        | Mode::Private => return Err(Outcome::NotARequest),
    };
    let mut scheme = match packet.trailer() {
        Trailer::None => Scheme::Plain,
        Trailer::CryptoNak => return Err(Outcome::NotARequest),
        Trailer::Mac { .. } => mac.claim(index, &packet)?,
    };
    let header: Header = packet.header();
    //= rfc5905#1-1, rfc5905#14-1, rfc5905#14-2
    slot.echo = Echo { version: header.version, mode, poll: header.poll, origin: header.transmit };
    slot.request_origin = header.origin;
    slot.request_receive = header.receive;
    slot.identifier = None;
    let mut antp = antp;
    if let Some(antp) = &mut antp
        && antp.claim_time(index, &packet)
    {
        return Ok(Scheme::Antp);
    }
    if packet.has_fields() {
        let fields = NtsFields::locate(&packet).map_err(|_| Outcome::NtsMalformed)?;
        slot.identifier = fields.identifier;
        if fields.is_nts() {
            // Fields that need MACs of different algorithms are not combined.
            //= rfc7822#3-4
            if scheme == Scheme::Mac {
                return Err(Outcome::NtsMalformed);
            }
            scheme = nts.claim(index, &fields, mode)?;
        }
        if let (true, Some(antp)) = (fields.has_antp, antp)
            && antp.claim(index, &packet)?
        {
            match scheme {
                // Fields that need MACs of different algorithms are not combined.
                //= rfc7822#3-4
                Scheme::Nts => return Err(Outcome::AntpMalformed),
                Scheme::Mac => {}
                Scheme::Plain | Scheme::Antp => scheme = Scheme::Antp,
            }
        }
    }
    Ok(scheme)
}
