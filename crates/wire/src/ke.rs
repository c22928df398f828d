//! NTS-KE records and the two messages that consist of them. RFC 8915 section 4.
//!
//! ```text
//!  0  critical bit, type u15 | body length u16, header excluded
//!  4  body, not padded
//! ```

use core::fmt;

use crate::limits::{COOKIE_COUNT, COOKIE_SIZE_MAX};
use crate::{Malformed, NoRoom, Reader, Reason, Writer};

const CRITICAL: u16 = 0x8000;
const RECORD_HEADER_SIZE: usize = 4;

/// Record type without the critical bit. RFC 8915 section 7.6.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordType(pub u16);

impl RecordType {
    /// Ends every message.
    pub const END_OF_MESSAGE: RecordType = RecordType(0);
    /// Protocols to be authenticated.
    pub const NEXT_PROTOCOL: RecordType = RecordType(1);
    /// The server gives up.
    pub const ERROR: RecordType = RecordType(2);
    /// The server warns.
    pub const WARNING: RecordType = RecordType(3);
    /// AEAD algorithms.
    pub const AEAD: RecordType = RecordType(4);
    /// One cookie.
    pub const NEW_COOKIE: RecordType = RecordType(5);
    /// Where the NTP server is.
    pub const NTPV4_SERVER: RecordType = RecordType(6);
    /// The NTP server's port.
    pub const NTPV4_PORT: RecordType = RecordType(7);
    /// Keys for AES-128-GCM-SIV are exported as RFC 8915 says; chrony 4.4 to 4.6.0 exported them differently. chrony,
    /// "NTS AES-128-GCM-SIV compliant exporter".
    pub const COMPLIANT_128GCM: RecordType = RecordType(1024);
}

impl fmt::Debug for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            RecordType::END_OF_MESSAGE => "End of Message",
            RecordType::NEXT_PROTOCOL => "Next Protocol",
            RecordType::ERROR => "Error",
            RecordType::WARNING => "Warning",
            RecordType::AEAD => "AEAD Algorithm",
            RecordType::NEW_COOKIE => "New Cookie",
            RecordType::NTPV4_SERVER => "NTPv4 Server",
            RecordType::NTPV4_PORT => "NTPv4 Port",
            RecordType::COMPLIANT_128GCM => "Compliant AES-128-GCM-SIV Exporter",
            RecordType(other) => return write!(f, "record type {other}"),
        })
    }
}

/// Next protocol identifier: NTPv4 is 0. RFC 8915 section 7.7.
pub const PROTOCOL_NTPV4: u16 = 0;

/// AEAD algorithm number. IANA, AEAD Algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AeadId(pub u16);

impl AeadId {
    /// AES-SIV-CMAC-256 (two AES-128 keys). Every NTS server has it. RFC 8915 section 5.1.
    pub const SIV_CMAC_256: AeadId = AeadId(15);
    /// AES-SIV-CMAC-384 (two AES-192 keys).
    pub const SIV_CMAC_384: AeadId = AeadId(16);
    /// AES-SIV-CMAC-512 (two AES-256 keys).
    pub const SIV_CMAC_512: AeadId = AeadId(17);
    /// AES-128-GCM-SIV. RFC 8452.
    pub const AES_128_GCM_SIV: AeadId = AeadId(30);
}

impl fmt::Display for AeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            AeadId::SIV_CMAC_256 => "AES-SIV-CMAC-256",
            AeadId::SIV_CMAC_384 => "AES-SIV-CMAC-384",
            AeadId::SIV_CMAC_512 => "AES-SIV-CMAC-512",
            AeadId::AES_128_GCM_SIV => "AES-128-GCM-SIV",
            AeadId(other) => return write!(f, "AEAD {other}"),
        })
    }
}

impl fmt::Debug for AeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an Error record says. RFC 8915 section 4.1.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u16);

impl ErrorCode {
    /// The request has a critical record that the server does not know.
    pub const UNRECOGNISED_CRITICAL: ErrorCode = ErrorCode(0);
    /// The request breaks the syntax, or did not come in time.
    pub const BAD_REQUEST: ErrorCode = ErrorCode(1);
    /// The server failed; the client may try again.
    pub const INTERNAL: ErrorCode = ErrorCode(2);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            ErrorCode::UNRECOGNISED_CRITICAL => "unrecognised critical record",
            ErrorCode::BAD_REQUEST => "bad request",
            ErrorCode::INTERNAL => "internal server error",
            ErrorCode(other) => return write!(f, "error {other}"),
        })
    }
}

//= rfc8915#4.1.3-4, rfc8915#4.1.3-5
impl From<Malformed> for ErrorCode {
    fn from(malformed: Malformed) -> Self {
        match malformed.reason {
            Reason::UnknownCritical => ErrorCode::UNRECOGNISED_CRITICAL,
            _ => ErrorCode::BAD_REQUEST,
        }
    }
}

/// One record of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Whether a receiver that does not know the type must give up.
    pub critical: bool,
    /// What it is.
    pub kind: RecordType,
    /// The body.
    pub body: &'a [u8],
    /// Octets from the start of the message to the record.
    pub offset: usize,
}

/// Iterates over the records of a message up to its End of Message, which is not included; ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    done: bool,
}

impl<'a> Records<'a> {
    /// The records of `message`.
    #[must_use]
    pub const fn new(message: &'a [u8]) -> Self {
        Records { reader: Reader::new(message), done: false }
    }

    //= rfc8915#4-5
    fn read(&mut self) -> Result<Option<Record<'a>>, Malformed> {
        let offset = self.reader.offset();
        let first = self.reader.u16()?;
        let size = usize::from(self.reader.u16()?);
        let record = Record {
            critical: first & CRITICAL != 0,
            kind: RecordType(first & !CRITICAL),
            body: self.reader.take(size)?,
            offset,
        };
        if record.kind != RecordType::END_OF_MESSAGE {
            return Ok(Some(record));
        }
        // End of Message has the critical bit set and no body, and comes last.
        //= rfc8915#4.1.1-1, rfc8915#4.1.1-2
        match (record.critical, size, self.reader.left()) {
            (true, 0, 0) => Ok(None),
            (false, ..) => Err(Malformed::new(Reason::NotCritical, offset)),
            (true, 1.., _) => Err(Malformed::new(Reason::Value, offset)),
            (true, 0, 1..) => Err(Malformed::new(Reason::TooLong, self.reader.offset())),
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.read().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Size of the message at the start of `octets`, including its End of Message; `None` while it is still incomplete.
//= rfc8915#4-7
#[must_use]
pub fn message_size(octets: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(octets);
    loop {
        let kind = reader.u16().ok()? & !CRITICAL;
        let size = usize::from(reader.u16().ok()?);
        reader.take(size).ok()?;
        if kind == RecordType::END_OF_MESSAGE.0 {
            return Some(reader.offset());
        }
    }
}

/// The values of a record body that lists 16-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberList<'a>(&'a [u8]);

impl<'a> NumberList<'a> {
    fn parse(record: &Record<'a>) -> Result<Self, Malformed> {
        if record.body.len().is_multiple_of(2) {
            Ok(NumberList(record.body))
        } else {
            Err(Malformed::new(Reason::InnerLength, record.offset))
        }
    }

    /// The numbers in the order of the wire.
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.0.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    }

    /// Whether `number` is listed.
    #[must_use]
    pub fn contains(&self, number: u16) -> bool {
        self.iter().any(|listed| listed == number)
    }
}

/// A client's request. RFC 8915 section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Protocols the client can use.
    pub protocols: NumberList<'a>,
    /// AEAD algorithms the client can use, best first.
    pub aeads: NumberList<'a>,
    /// The client exports AES-128-GCM-SIV keys as the RFC says (record 1024).
    pub compliant_128gcm: bool,
}

impl<'a> Request<'a> {
    /// Parses a whole message. [`ErrorCode::from`] turns the error into the server's answer.
    pub fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let (mut protocols, mut aeads, mut compliant_128gcm) = (None, None, false);
        for record in Records::new(message) {
            let record = record?;
            match record.kind {
                RecordType::NEXT_PROTOCOL => list_once(&mut protocols, &record, true)?,
                RecordType::AEAD => list_once(&mut aeads, &record, false)?,
                RecordType::COMPLIANT_128GCM => compliant_128gcm = true,
                // Preferences of the client, which this server ignores.
                RecordType::NTPV4_SERVER | RecordType::NTPV4_PORT => {}
                //= rfc8915#4.1.3-2, rfc8915#4.1.4-1, rfc8915#4.1.6-2
                RecordType::ERROR | RecordType::WARNING | RecordType::NEW_COOKIE => {
                    return Err(Malformed::new(Reason::WrongDirection, record.offset));
                }
                //= rfc8915#4.1.3-4, rfc8915#4-11
                _ if record.critical => return Err(Malformed::new(Reason::UnknownCritical, record.offset)),
                //= rfc8915#4-10
                _ => {}
            }
        }
        let missing = Malformed::new(Reason::Missing, message.len());
        let protocols = protocols.ok_or(missing)?;
        let aeads = match aeads {
            Some(aeads) => aeads,
            // RFC 8915 section 4.1.5: exactly one AEAD record if NTPv4 is offered; another protocol may need none.
            //= rfc8915#4.1.5-1
            None if protocols.contains(PROTOCOL_NTPV4) => return Err(missing),
            None => NumberList(&[]),
        };
        Ok(Request { protocols, aeads, compliant_128gcm })
    }

    /// Writes a request for NTPv4 with `aeads`, the best first. Record 1024 goes along with AES-128-GCM-SIV.
    pub fn emit(out: &mut Writer<'_>, aeads: &[AeadId]) -> Result<(), NoRoom> {
        //= rfc8915#4.1.2-4, rfc8915#4.1.5-2, rfc8915#4.1.2-1
        emit_numbers(out, RecordType::NEXT_PROTOCOL, &[PROTOCOL_NTPV4])?;
        emit_header(out, true, RecordType::AEAD, aeads.len() * 2)?;
        for aead in aeads {
            out.u16(aead.0)?;
        }
        if aeads.contains(&AeadId::AES_128_GCM_SIV) {
            emit(out, false, RecordType::COMPLIANT_128GCM, &[])?;
        }
        emit(out, true, RecordType::END_OF_MESSAGE, &[])
    }
}

//= rfc8915#4-6, rfc8915#4.1.2-1, rfc8915#4.1.2-2, rfc8915#4.1.5-1
fn list_once<'a>(
    slot: &mut Option<NumberList<'a>>,
    record: &Record<'a>,
    critical: bool,
) -> Result<(), Malformed> {
    if critical && !record.critical {
        return Err(Malformed::new(Reason::NotCritical, record.offset));
    }
    match slot.replace(NumberList::parse(record)?) {
        None => Ok(()),
        Some(_) => Err(Malformed::new(Reason::Duplicate, record.offset)),
    }
}

/// The result of a server's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// Keys can be exported and cookies used.
    Agreed(Agreement<'a>),
    /// The server sent an Error record.
    Error(ErrorCode),
    /// The server sent a Warning record; none are defined, so it counts as an error. RFC 8915 section 4.1.4.
    Warning(u16),
    /// The server does not serve NTPv4 with NTS.
    NoProtocol,
    /// The server has none of the AEAD algorithms that the client offered.
    NoAead,
}

/// A successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement<'a> {
    /// The algorithm of the server's choice.
    pub aead: AeadId,
    /// The server exports AES-128-GCM-SIV keys as the RFC says (record 1024).
    pub compliant_128gcm: bool,
    /// The NTP server's name or address; absent: the address of the key exchange server.
    pub server: Option<&'a str>,
    /// The NTP server's port; absent: 123.
    pub port: Option<u16>,
    message: &'a [u8],
}

impl<'a> Agreement<'a> {
    /// The cookies, at most eight, each of 1 to [`COOKIE_SIZE_MAX`] octets; others are ignored.
    //= rfc8915#4.1.6-1
    pub fn cookies(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Records::new(self.message)
            .map_while(Result::ok)
            .filter(|record| record.kind == RecordType::NEW_COOKIE)
            .map(|record| record.body)
            .filter(|cookie| (1..=COOKIE_SIZE_MAX).contains(&cookie.len()))
            .take(COOKIE_COUNT)
    }
}

impl<'a> Response<'a> {
    /// Reads a whole message, as a client that offered `offered`.
    pub fn parse(message: &'a [u8], offered: &[AeadId]) -> Result<Self, Malformed> {
        let (mut protocols, mut aeads) = (None, None);
        let (mut server, mut port, mut compliant_128gcm) = (None, None, false);
        for record in Records::new(message) {
            let record = record?;
            let value = Malformed::new(Reason::Value, record.offset);
            match record.kind {
                //= rfc8915#4.1.3-3
                RecordType::ERROR => return Ok(Response::Error(ErrorCode(number(&record)?))),
                //= rfc8915#4.1.4-2
                RecordType::WARNING => return Ok(Response::Warning(number(&record)?)),
                RecordType::NEXT_PROTOCOL => list_once(&mut protocols, &record, true)?,
                RecordType::AEAD => list_once(&mut aeads, &record, false)?,
                RecordType::COMPLIANT_128GCM => compliant_128gcm = true,
                RecordType::NTPV4_SERVER => {
                    let name = core::str::from_utf8(record.body).map_err(|_| value)?;
                    //= rfc8915#4.1.7-1
                    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
                    if name.is_empty() || name.len() > 255 || !name.chars().all(plain) {
                        return Err(value);
                    }
                    server = Some(name);
                }
                //= rfc8915#4.1.8-2
                RecordType::NTPV4_PORT => match number(&record)? {
                    0 => return Err(value),
                    nonzero => port = Some(nonzero),
                },
                RecordType::NEW_COOKIE => {}
                //= rfc8915#4-11
                _ if record.critical => return Err(Malformed::new(Reason::UnknownCritical, record.offset)),
                //= rfc8915#4-10
                _ => {}
            }
        }
        let missing = Malformed::new(Reason::Missing, message.len());
        if !protocols.ok_or(missing)?.contains(PROTOCOL_NTPV4) {
            return Ok(Response::NoProtocol);
        }
        let mut chosen = aeads.ok_or(missing)?.iter();
        let aead = match (chosen.next().map(AeadId), chosen.next()) {
            (None, _) => return Ok(Response::NoAead),
            //= rfc8915#4.1.5-3
            (Some(aead), None) if offered.contains(&aead) => aead,
            _ => return Err(Malformed::new(Reason::Value, message.len())),
        };
        let agreement = Agreement { aead, compliant_128gcm, server, port, message };
        if agreement.cookies().next().is_none() {
            return Err(missing);
        }
        Ok(Response::Agreed(agreement))
    }
}

fn number(record: &Record<'_>) -> Result<u16, Malformed> {
    match *record.body {
        [high, low] => Ok(u16::from_be_bytes([high, low])),
        _ => Err(Malformed::new(Reason::InnerLength, record.offset)),
    }
}

/// Writes a record.
pub fn emit(out: &mut Writer<'_>, critical: bool, kind: RecordType, body: &[u8]) -> Result<(), NoRoom> {
    emit_header(out, critical, kind, body.len())?;
    out.put(body)
}

/// Writes a record's header; `body_size` octets of body must follow.
pub fn emit_header(
    out: &mut Writer<'_>,
    critical: bool,
    kind: RecordType,
    body_size: usize,
) -> Result<(), NoRoom> {
    out.u16(kind.0 | if critical { CRITICAL } else { 0 })?;
    out.u16(u16::try_from(body_size).map_err(|_| NoRoom)?)
}

/// Writes a critical record that lists `numbers`.
pub fn emit_numbers(out: &mut Writer<'_>, kind: RecordType, numbers: &[u16]) -> Result<(), NoRoom> {
    emit_header(out, true, kind, numbers.len() * 2)?;
    numbers.iter().try_for_each(|&number| out.u16(number))
}

/// Octets of a record with a body of `body_size` octets.
#[must_use]
pub const fn record_size(body_size: usize) -> usize {
    RECORD_HEADER_SIZE + body_size
}

#[cfg(test)]
mod tests;
