//! The server's side of the dialogue, without sockets: a request in, a response out.

use authentick_crypto::{Algorithm, Entropy};
use authentick_proto::auth::nts::{aead_id, algorithm};
use authentick_proto::cookie;
use authentick_proto::delays::{Step, pause};
use authentick_proto::keyset::KeySet;
use authentick_wire::ke::{
    self, AeadId, ErrorCode, PROTOCOL_NTPV4, RecordType, Request, emit, emit_header, emit_numbers,
};
use authentick_wire::limits::COOKIE_COUNT;
use authentick_wire::{NoRoom, Writer};

use crate::ntp_servers::{NtpServer, NtpServers};
use crate::{export_keys, quirky_context};

/// Octets of the longest response: eight cookies of the longest kind, a server name, and the small records.
pub const RESPONSE_SIZE_MAX: usize = 2048;

const _: () = assert!(
    COOKIE_COUNT * ke::record_size(cookie::size(Algorithm::SivCmac512)) + ke::record_size(255) + 64
        <= RESPONSE_SIZE_MAX,
    "a response holds the longest cookies and the longest name"
);

/// What a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Where clients are sent for time.
    pub ntp_servers: NtpServers,
    /// Algorithms that are served; the client's preference decides among them.
    pub algorithms: Vec<Algorithm>,
}

impl Default for Terms {
    /// Every algorithm, and an NTP server where clients expect it.
    fn default() -> Self {
        Terms { ntp_servers: NtpServers::default(), algorithms: Algorithm::ALL.to_vec() }
    }
}

/// What a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Cookies for a session with this AEAD.
    Cookies(AeadId),
    /// None of the client's protocols or algorithms is served here.
    NothingInCommon,
    /// An Error record.
    Error(ErrorCode),
}

/// Answers a whole request message. `export` fills its first argument with key material for the context in its second.
/// `reached` is told of each [`Milestone`] as it is reached; of all of them, in their order, if the answer has cookies.
/// Returns what was said, and its size in `out`.
pub fn answer(
    request: &[u8],
    keys: &KeySet,
    terms: &Terms,
    entropy: &mut Entropy,
    export: impl Fn(&mut [u8], &[u8]) -> Result<(), rustls::Error>,
    mut reached: impl FnMut(Milestone),
    out: &mut [u8; RESPONSE_SIZE_MAX],
) -> (Answer, usize) {
    let request = match Request::parse(request) {
        Ok(request) => request,
        Err(malformed) => return refuse(malformed.into(), out),
    };
    reached(Milestone::RequestParsed);
    let mut writer = Writer::new(out);
    //= rfc8915#4.1.2-3
    if !request.protocols.contains(PROTOCOL_NTPV4) {
        // RFC 8915 section 4.1.2: a response without any protocol.
        return finish(Answer::NothingInCommon, writer, |out| {
            emit_numbers(out, RecordType::NEXT_PROTOCOL, &[])
        });
    }
    //= rfc8915#4.1.5-6, rfc8915#4.1.5-5
    let Some(algorithm) = choose(&request, &terms.algorithms) else {
        return finish(Answer::NothingInCommon, writer, |out| {
            emit_numbers(out, RecordType::NEXT_PROTOCOL, &[PROTOCOL_NTPV4])?;
            emit_numbers(out, RecordType::AEAD, &[])
        });
    };
    pause(Step::ChooseAlgorithm);
    reached(Milestone::AlgorithmChosen);
    pause(Step::ExportKeys);
    let context = quirky_context(algorithm, request.compliant_128gcm);
    let Ok(session) = export_keys(algorithm, context, export) else {
        //= rfc8915#4.1.3-7
        return refuse(ErrorCode::INTERNAL, out);
    };
    reached(Milestone::KeysExported);

    let size = cookie::size(algorithm);
    //= rfc8915#4.1.6-3, rfc8915#4.1.6-4
    let mut cookies = [0; COOKIE_COUNT * cookie::size(Algorithm::SivCmac512)];
    let cookies = &mut cookies[..COOKIE_COUNT * size];
    cookie::seal_all(keys, entropy, cookies.chunks_exact_mut(size).map(|place| (&session, place)));
    reached(Milestone::CookiesSealed);
    pause(Step::WriteResponse);

    let id = aead_id(algorithm);
    let written = head(&mut writer, id, request.compliant_128gcm).and_then(|()| {
        //= rfc8915#4.1.6-5
        cookies.chunks_exact(size).try_for_each(|c| emit(&mut writer, false, RecordType::NEW_COOKIE, c))
    });
    if written.is_err() {
        return refuse(ErrorCode::INTERNAL, out);
    }
    let answered = finish(Answer::Cookies(id), writer, |out| place(terms.ntp_servers.pick(entropy), out));
    reached(Milestone::ResponseWritten);
    answered
}

/// A moment inside [`answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// The request was read and understood.
    RequestParsed,
    /// It was found to have a protocol and an algorithm that are served here.
    AlgorithmChosen,
    /// The session's keys were exported.
    KeysExported,
    /// The cookies were sealed.
    CookiesSealed,
    /// The response with all cookies was written.
    ResponseWritten,
}

impl Milestone {
    /// How many there are.
    pub const COUNT: usize = Milestone::ResponseWritten as usize + 1;
}

/// A response that is an Error record; returns its size.
//= rfc8915#4.1.3-1
pub fn refuse(code: ErrorCode, out: &mut [u8; RESPONSE_SIZE_MAX]) -> (Answer, usize) {
    finish(Answer::Error(code), Writer::new(out), |out| emit_numbers(out, RecordType::ERROR, &[code.0]))
}

/// The client's first choice among what is served. AES-128-GCM-SIV without record 1024 is a last resort: the two
/// sides might export different keys.
//= rfc8915#4.1.5-5
fn choose(request: &Request<'_>, served: &[Algorithm]) -> Option<Algorithm> {
    let served =
        || request.aeads.iter().filter_map(|id| algorithm(AeadId(id))).filter(|id| served.contains(id));
    let doubtful = |algorithm: &Algorithm| *algorithm == Algorithm::Aes128GcmSiv && !request.compliant_128gcm;
    served().find(|algorithm| !doubtful(algorithm)).or_else(|| served().next())
}

//= rfc8915#4.1.5-3, rfc8915#4.1.2-2
fn head(out: &mut Writer<'_>, id: AeadId, compliant_128gcm: bool) -> Result<(), NoRoom> {
    emit_numbers(out, RecordType::NEXT_PROTOCOL, &[PROTOCOL_NTPV4])?;
    emit_numbers(out, RecordType::AEAD, &[id.0])?;
    if compliant_128gcm && id == AeadId::AES_128_GCM_SIV {
        emit(out, false, RecordType::COMPLIANT_128GCM, &[])?;
    }
    Ok(())
}

//= rfc8915#4.1.7-4, rfc8915#4.1.8-2
fn place(server: &NtpServer, out: &mut Writer<'_>) -> Result<(), NoRoom> {
    if let Some(name) = &server.name {
        emit(out, true, RecordType::NTPV4_SERVER, name.as_bytes())?;
    }
    if let Some(port) = server.port {
        emit_header(out, true, RecordType::NTPV4_PORT, 2)?;
        out.u16(port)?;
    }
    Ok(())
}

fn finish(
    answer: Answer,
    mut out: Writer<'_>,
    rest: impl FnOnce(&mut Writer<'_>) -> Result<(), NoRoom>,
) -> (Answer, usize) {
    let end = RecordType::END_OF_MESSAGE;
    rest(&mut out)
        .and_then(|()| emit(&mut out, true, end, &[]))
        .expect("RESPONSE_SIZE_MAX octets hold every response");
    (answer, out.offset())
}

#[cfg(test)]
mod tests {
    use super::*;
    use authentick_wire::ke::Response;
    use std::cell::RefCell;

    struct Asked {
        answer: Answer,
        response: Vec<u8>,
        contexts: Vec<Vec<u8>>,
    }

    fn ask(request: &[u8], terms: &Terms) -> Asked {
        let mut entropy = Entropy::from_seed(1);
        let keys = KeySet::generate(0, &mut entropy);
        let contexts = RefCell::new(Vec::new());
        let export = |octets: &mut [u8], context: &[u8]| {
            octets.fill(context[4] + 1);
            contexts.borrow_mut().push(context.to_vec());
            Ok(())
        };
        let mut out = [0; RESPONSE_SIZE_MAX];
        let (answer, size) = answer(request, &keys, terms, &mut entropy, export, |_| {}, &mut out);
        Asked { answer, response: out[..size].to_vec(), contexts: contexts.into_inner() }
    }

    fn at(name: &str, port: Option<u16>) -> Terms {
        let server = NtpServer { name: Some(name.to_owned()), port };
        Terms { ntp_servers: NtpServers::new([(server, 1)]).unwrap(), ..Terms::default() }
    }

    fn request(aeads: &[u16], compliant: bool) -> Vec<u8> {
        let mut octets = vec![0; 256];
        let mut out = Writer::new(&mut octets);
        emit_numbers(&mut out, RecordType::NEXT_PROTOCOL, &[0x8001, PROTOCOL_NTPV4]).unwrap();
        emit_numbers(&mut out, RecordType::AEAD, aeads).unwrap();
        if compliant {
            emit(&mut out, false, RecordType::COMPLIANT_128GCM, &[]).unwrap();
        }
        emit(&mut out, true, RecordType::END_OF_MESSAGE, &[]).unwrap();
        let size = out.offset();
        octets.truncate(size);
        octets
    }

    //= rfc8915#4.1.5-5, rfc8915#4.1.6-3, rfc8915#4.1.6-4, rfc8915#4.3-3, rfc8915#5.1-1, rfc8915#5.1-3
    //= rfc8915#5.1-4, rfc8915#5.1-5
    #[test]
    fn first_choice_of_the_client_wins_and_gets_eight_cookies() {
        for (offered, chosen, size) in
            [(&[15][..], 15, 96), (&[17, 15], 17, 160), (&[99, 16, 15], 16, 128), (&[30, 15], 30, 64)]
        {
            let asked = ask(&request(offered, true), &Terms::default());
            assert_eq!(asked.answer, Answer::Cookies(AeadId(chosen)));
            let offered: Vec<AeadId> = offered.iter().map(|&id| AeadId(id)).collect();
            let Ok(Response::Agreed(agreement)) = Response::parse(&asked.response, &offered) else {
                panic!()
            };
            assert_eq!(agreement.cookies().map(<[u8]>::len).collect::<Vec<_>>(), [size; 8]);
            assert_eq!((agreement.server, agreement.port), (None, None));
            assert_eq!(agreement.compliant_128gcm, chosen == 30);
            let [high, low] = chosen.to_be_bytes();
            assert_eq!(asked.contexts, [[0, 0, high, low, 0], [0, 0, high, low, 1]]);
        }
    }

    #[test]
    fn gcm_siv_without_record_1024_yields_to_another_or_is_exported_as_chrony_does() {
        assert_eq!(ask(&request(&[30, 15], false), &Terms::default()).answer, Answer::Cookies(AeadId(15)));
        let asked = ask(&request(&[30], false), &Terms::default());
        assert_eq!(asked.answer, Answer::Cookies(AeadId(30)));
        assert_eq!(asked.contexts, [[0, 0, 0, 15, 0], [0, 0, 0, 15, 1]]);
    }

    //= rfc8915#4.1.5-5
    #[test]
    fn algorithms_that_are_not_served_are_passed_over() {
        let terms = Terms { algorithms: vec![Algorithm::SivCmac256], ..Terms::default() };
        assert_eq!(ask(&request(&[17, 30, 15], true), &terms).answer, Answer::Cookies(AeadId(15)));
        assert_eq!(ask(&request(&[17], true), &terms).answer, Answer::NothingInCommon);
    }

    #[test]
    fn server_and_port_are_told() {
        let terms = at("time.example", Some(4123));
        let asked = ask(&request(&[15], false), &terms);
        let Ok(Response::Agreed(agreement)) = Response::parse(&asked.response, &[AeadId(15)]) else {
            panic!()
        };
        assert_eq!((agreement.server, agreement.port), (Some("time.example"), Some(4123)));
    }

    //= rfc8915#4.1.2-2, rfc8915#4.1.6-5, rfc8915#4.1.7-4
    #[test]
    fn records_of_a_response_are_critical_but_for_the_cookies_and_name_one_server() {
        let terms = at("time.example", None);
        let asked = ask(&request(&[15], false), &terms);
        let records: Result<Vec<_>, _> = ke::Records::new(&asked.response).collect();
        let kinds: Vec<(u16, bool)> = records.unwrap().iter().map(|r| (r.kind.0, r.critical)).collect();
        assert_eq!(kinds, [&[(1, true), (4, true)][..], &[(5, false); 8], &[(6, true)]].concat());
    }

    //= rfc8915#4.1.3-1
    #[test]
    fn error_is_a_critical_record_of_two_octets() {
        let mut out = [0; RESPONSE_SIZE_MAX];
        let (_, size) = refuse(ErrorCode::INTERNAL, &mut out);
        assert_eq!(out[..size], *b"\x80\x02\0\x02\0\x02\x80\0\0\0");
    }

    //= rfc8915#4.1.3-7
    #[test]
    fn keys_that_cannot_be_exported_are_an_internal_error() {
        let mut entropy = Entropy::from_seed(1);
        let keys = KeySet::generate(0, &mut entropy);
        let export = |_: &mut [u8], _: &[u8]| Err(rustls::Error::HandshakeNotComplete);
        let (request, mut out) = (request(&[15], false), [0; RESPONSE_SIZE_MAX]);
        let (answer, size) =
            answer(&request, &keys, &Terms::default(), &mut entropy, export, |_| {}, &mut out);
        assert_eq!(answer, Answer::Error(ErrorCode::INTERNAL));
        assert_eq!(Response::parse(&out[..size], &[]), Ok(Response::Error(ErrorCode::INTERNAL)));
    }

    //= rfc8915#4.1.2-3, rfc8915#4.1.5-6
    #[test]
    fn nothing_in_common_is_an_empty_record_and_no_error() {
        let asked = ask(&request(&[1, 2], false), &Terms::default());
        assert_eq!(asked.answer, Answer::NothingInCommon);
        assert_eq!(Response::parse(&asked.response, &[AeadId(1)]), Ok(Response::NoAead));
        let asked = ask(b"\x80\x01\0\x02\x80\x01\x80\0\0\0", &Terms::default());
        assert_eq!(Response::parse(&asked.response, &[]), Ok(Response::NoProtocol));
    }

    #[test]
    fn broken_requests_get_the_error_of_their_fault() {
        let error = |request: &[u8]| ask(request, &Terms::default()).answer;
        assert_eq!(error(b""), Answer::Error(ErrorCode::BAD_REQUEST));
        assert_eq!(error(b"\x80\0\0\0"), Answer::Error(ErrorCode::BAD_REQUEST));
        let critical = b"\x80\x01\0\x02\0\0\x80\x04\0\x02\0\x0f\x80\x63\0\0\x80\0\0\0";
        assert_eq!(error(critical), Answer::Error(ErrorCode::UNRECOGNISED_CRITICAL));
    }
}
