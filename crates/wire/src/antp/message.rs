//! The ANTP fields of a packet taken together: which message it carries, and what stands before it.

use super::{
    CERT, Chunk, ERR, Early, ErrorMessage, KEX_REQ, KEX_RSP, KeyRequest, KeyResponse, MAGIC, NEG_REQ,
    NEG_RSP, NegotiationRequest, NegotiationResponse, PAD, PREFIX_SIZE, Prefix, Suite, TS_EARLY, TS_REQ,
    TS_RSP, TimeRequest, TimeResponse,
};
use crate::extension::{self, Field};
use crate::limits::{ANTP_PAYLOAD_SIZE_MAX, FIELD_HEADER_SIZE, FIELD_SIZE_MIN};
use crate::packet::{Packet, Trailer};
use crate::{Malformed, NoRoom, Reader, Reason, Writer};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// m1.
    NegotiationRequest(NegotiationRequest<'a>),
    /// m2, and the chunk of the certificate chain that came with it.
    NegotiationResponse(NegotiationResponse<'a>, Option<Chunk<'a>>),
    /// m3.
    KeyRequest(KeyRequest<'a>),
    /// m4.
    KeyResponse(KeyResponse<'a>),
    /// m5.
    TimeRequest(TimeRequest<'a>),
    /// m6; in separate-tag mode, the follow-up.
    TimeResponse {
        /// The early packet's field, which a follow-up repeats.
        early: Option<Early<'a>>,
        /// The tag.
        response: TimeResponse<'a>,
    },
    /// The early packet of separate-tag mode.
    Early(Early<'a>),
    /// An error.
    Error(ErrorMessage),
}

impl Message<'_> {
    /// Writes the message's fields as its sender does: those of a chunk or of an early packet stand before the last.
    ///
    /// # Errors
    /// If `out` is full. What was written until then stays.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        match self {
            Message::NegotiationRequest(request) => request.emit(out),
            Message::NegotiationResponse(response, chunk) => {
                chunk.iter().try_for_each(|chunk| emit_chunk(out, response.suite, chunk.octets))?;
                response.emit(out)
            }
            Message::KeyRequest(request) => request.emit(out),
            Message::KeyResponse(response) => response.emit(out),
            Message::TimeRequest(request) => request.emit(out),
            Message::TimeResponse { early, response } => {
                early.iter().try_for_each(|early| early.emit(out))?;
                response.emit(out)
            }
            Message::Early(early) => early.emit(out),
            Message::Error(error) => error.emit(out),
        }
    }
}

/// What a packet holds of ANTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Antp<'a> {
    /// The message.
    pub message: Message<'a>,
    /// Octets from the start of the packet to the message's field, which is the last one.
    pub offset: usize,
    /// Octets of fields that carry nothing.
    pub padding_size: usize,
}

impl<'a> Antp<'a> {
    /// Takes the ANTP fields of `packet` apart; `None` if there are none, and the packet is plain NTP.
    ///
    /// A field of our types without our magic is somebody else's and ignored, as is any other field before the
    /// message. [`Reason::AntpVersion`] is the one failure that a server answers.
    pub fn locate(packet: &Packet<'a>) -> Result<Option<Self>, Malformed> {
        let (mut certificate, mut found) = (None, None);
        let (mut padding_size, mut any) = (0, false);
        for field in packet.fields() {
            // Nothing but the tag of a follow-up comes after a message.
            let before = match found.take() {
                None => None,
                Some(Antp { message: Message::Early(before), .. }) if field.kind == TS_RSP => Some(before),
                //= antp#carrier-4
                Some(_) => return Err(misfit(&field)),
            };
            if !is_ours(&field) {
                if before.is_some() {
                    return Err(misfit(&field));
                }
                continue;
            }
            any = true;
            let (mut reader, offset) = (Reader::new(field.body), field.offset);
            let prefix = Prefix::parse(&mut reader, offset)?;
            let rest = &mut reader;
            let message = match field.kind {
                PAD => {
                    //= antp#messages-4
                    if field.body[PREFIX_SIZE..].iter().any(|&octet| octet != 0) {
                        return Err(Malformed::new(Reason::Value, offset));
                    }
                    padding_size += FIELD_HEADER_SIZE + field.body.len();
                    continue;
                }
                CERT => match certificate.replace(field) {
                    None => continue,
                    Some(_) => return Err(Malformed::new(Reason::Duplicate, offset)),
                },
                NEG_REQ => NegotiationRequest::parse(prefix, rest, offset).map(Message::NegotiationRequest),
                NEG_RSP => NegotiationResponse::parse(prefix, rest, offset)
                    .map(|response| Message::NegotiationResponse(response, None)),
                KEX_REQ => KeyRequest::parse(prefix, rest, offset).map(Message::KeyRequest),
                KEX_RSP => KeyResponse::parse(prefix, rest, offset).map(Message::KeyResponse),
                TS_REQ => TimeRequest::parse(prefix, rest).map(Message::TimeRequest),
                TS_RSP => TimeResponse::parse(prefix, rest)
                    .map(|response| Message::TimeResponse { early: before, response }),
                TS_EARLY => Early::parse(prefix, rest).map(Message::Early),
                _ => ErrorMessage::parse(rest).map(Message::Error),
            };
            // A value that ends too early, or goes on, has a size that its message never has.
            let message = message.map_err(|inner| match inner.reason {
                Reason::Truncated => Malformed::new(Reason::FieldLength, offset),
                _ => inner,
            })?;
            //= antp#messages-2
            if reader.left() != 0 {
                return Err(Malformed::new(Reason::FieldLength, offset));
            }
            found = Some(Antp { message, offset, padding_size });
        }
        if !any {
            return Ok(None);
        }
        //= antp#carrier-5
        if packet.octets().len() > ANTP_PAYLOAD_SIZE_MAX {
            return Err(Malformed::new(Reason::TooLong, ANTP_PAYLOAD_SIZE_MAX));
        }
        //= antp#carrier-3
        if packet.trailer() != Trailer::None {
            return Err(Malformed::new(Reason::Trailer, packet.octets().len()));
        }
        let mut found = found.ok_or(Malformed::new(Reason::Missing, packet.octets().len()))?;
        if let Some(field) = certificate {
            match &mut found.message {
                Message::NegotiationResponse(response, chunk) => *chunk = Some(cut(response, &field)),
                _ => return Err(Malformed::new(Reason::Misplaced, field.offset)),
            }
        }
        Ok(Some(found))
    }

    /// The message's whole field as it was sent, for transcripts. `packet` is the one that it was found in.
    ///
    /// # Panics
    /// If `packet` is shorter than that one.
    #[must_use]
    pub fn field<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        &packet[self.offset..]
    }
}

//= antp#carrier-7
fn is_ours(field: &Field<'_>) -> bool {
    let kinds = [NEG_REQ, NEG_RSP, KEX_REQ, KEX_RSP, TS_REQ, TS_RSP, TS_EARLY, CERT, ERR, PAD];
    kinds.contains(&field.kind) && field.body.starts_with(&MAGIC)
}

/// Why `field` may not follow a message.
fn misfit(field: &Field<'_>) -> Malformed {
    let is_message = is_ours(field) && field.kind != PAD && field.kind != CERT;
    Malformed::new(if is_message { Reason::Duplicate } else { Reason::Misplaced }, field.offset)
}

/// The chunk without the padding of its field.
fn cut<'a>(response: &NegotiationResponse<'_>, field: &Field<'a>) -> Chunk<'a> {
    let space = &field.body[PREFIX_SIZE..];
    // `NegotiationResponse::parse` refuses an offset behind the end.
    let left = usize::from(response.chain_size - response.chunk_offset);
    Chunk { offset: response.chunk_offset, octets: &space[..space.len().min(left)] }
}

/// Writes a certificate field, which stands before an m2 for `suite`.
pub fn emit_chunk(out: &mut Writer<'_>, suite: Suite, octets: &[u8]) -> Result<(), NoRoom> {
    extension::emit_header(out, CERT, PREFIX_SIZE + octets.len())?;
    Prefix::of(suite).emit(out)?;
    out.put(octets)?;
    out.zeros(octets.len().next_multiple_of(4) - octets.len())
}

/// Writes a padding field of `size` octets, its header included; nothing for zero.
///
/// Fails on sizes that no field has: those below 16, and those that are no multiple of four.
pub fn emit_padding(out: &mut Writer<'_>, size: usize) -> Result<(), NoRoom> {
    if size == 0 {
        return Ok(());
    }
    if size < FIELD_SIZE_MIN || !size.is_multiple_of(4) {
        return Err(NoRoom);
    }
    extension::emit_header(out, PAD, size - FIELD_HEADER_SIZE)?;
    Prefix::default().emit(out)?;
    out.zeros(size - FIELD_HEADER_SIZE - PREFIX_SIZE)
}
