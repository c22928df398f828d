//! What a user can do about a client's failure, in the words of the command line.

use std::borrow::Cow;
use std::io::ErrorKind;

use authentick_client::antp::ocsp::OcspError;
use authentick_client::{Error, Why};
use authentick_ke::client::{CertificateCheck, KeError, Phase};
use authentick_wire::ke::AeadId;

/// What may help, if anything is known to.
pub(crate) fn remedy(error: &Error) -> Option<Cow<'static, str>> {
    let exchange = |error: &KeError, offered: &[AeadId]| match error {
        // cfnts does so when 30 is offered.
        KeError::Closed(Phase::Exchange) if *offered != [AeadId::SIV_CMAC_256] => {
            Some("some do so when they are offered an algorithm that they do not know: try --aead 15")
        }
        KeError::Certificate(CertificateCheck::Issuer, _) => Some(
            "name the file of its authority with --ca FILE; if that is done, the server may not send its \
             intermediate certificates",
        ),
        KeError::Certificate(CertificateCheck::Name, _) => {
            Some("give the name that it is for with --server-name NAME")
        }
        KeError::Connect(error) if error.kind() == ErrorKind::ConnectionRefused => Some(
            "no key exchange is there: give its port with --ke-port N, or ask without NTS, as with query --auth plain",
        ),
        KeError::Tls(rustls::Error::InvalidMessage(_)) => {
            Some("what is on this port may not speak TLS; give another with --ke-port N")
        }
        _ => None,
    };
    match &error.why {
        Why::KeyExchange { error, offered } => exchange(error, offered).map(Cow::Borrowed),
        Why::Ocsp(OcspError::NoResponder(_) | OcspError::NotPlain(..) | OcspError::NoListener(_)) => {
            Some("name one with --ocsp URL".into())
        }
        Why::Store(error) => Some(error.remedy().into()),
        Why::NoneResponded(_)
        | Why::Unresolved(_)
        | Why::Unanswered(_)
        | Why::UnansweredAntp(_)
        | Why::Untrusted(_)
        | Why::Ocsp(_)
        | Why::Disagreement(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use authentick_client::Place;
    use authentick_client::antp::store::{Store, StoreError};
    use authentick_wire::antp::Chain;

    use super::*;
    use crate::exit::{Exit, Failure};

    #[test]
    fn server_that_has_spoken_antp_is_forgotten_by_an_option_that_the_refusal_names() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("state"));
        store.prepare().unwrap();
        store.keep("ntp.test", &Chain::parse(&[0, 3, 7, 8, 9, 0, 1, 5]).unwrap()).unwrap();
        for name in ["ntp.test", "NTP.Test", "ntp.test."] {
            let refused = Failure::from(store.admit_plain(name).unwrap_err());
            assert_eq!(refused.exit, Exit::Authentication);
            assert!(refused.message.contains("--forget-antp"), "{}", refused.message);
        }
    }

    #[test]
    fn corrupt_files_are_named_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let store = Store::at(state.clone());
        store.prepare().unwrap();
        let failure = |name: &str, octets: &[u8], of: &dyn Fn() -> StoreError| {
            fs::write(state.join(name), octets).unwrap();
            let failure = Failure::from(of());
            assert_eq!(failure.exit, Exit::Configuration);
            assert!(
                failure.message.contains(name) && failure.message.contains("remove"),
                "{}",
                failure.message
            );
        };
        failure("antp-servers", b"two words\n", &|| store.admit_plain("other.test").unwrap_err());
        failure("antp-servers", &[0xFF], &|| store.admit_plain("other.test").unwrap_err());
        failure("antp-time", b"yesterday", &|| store.last_time().unwrap_err());
        failure("antp-chains/of-ntp.test", &[0, 9, 1], &|| store.chain("ntp.test").unwrap_err());
        failure("antp-chains/of-ntp.test", &vec![0; 1 << 20], &|| store.chain("ntp.test").unwrap_err());
        fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Failure::from(store.prepare().unwrap_err());
        assert!(refused.message.contains("chmod 700"), "{}", refused.message);
    }

    #[test]
    fn certificate_without_a_responder_is_helped_by_the_option_that_names_one() {
        let (subject, url) = ("CN=leaf".to_owned(), "https://own.test/".to_owned());
        for error in [OcspError::NoResponder(subject.clone()), OcspError::NotPlain(subject, url)] {
            let failure = Failure::from(Error { place: Place::Tentative, why: error.into() });
            assert!(failure.message.ends_with("; name one with --ocsp URL"), "{}", failure.message);
        }
    }

    #[test]
    fn failed_key_exchange_has_its_remedy() {
        let of = |error: KeError, offered: &[AeadId]| {
            let place = Place::KeyExchange { host: "ntp.test".to_owned(), port: 4460 };
            remedy(&Error { place, why: Why::KeyExchange { error, offered: offered.to_vec() } })
        };
        let certificate = |check| KeError::Certificate(check, String::new());
        let garbage = rustls::InvalidMessage::InvalidContentType;
        let both = [AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256];
        for (error, part) in [
            (KeError::Closed(Phase::Exchange), "try --aead 15"),
            (certificate(CertificateCheck::Issuer), "--ca FILE"),
            (certificate(CertificateCheck::Name), "--server-name NAME"),
            (KeError::Connect(ErrorKind::ConnectionRefused.into()), "--ke-port N, or ask without NTS"),
            (KeError::Tls(rustls::Error::InvalidMessage(garbage)), "may not speak TLS"),
        ] {
            assert!(of(error, &both).is_some_and(|remedy| remedy.contains(part)), "{part}");
        }
        for error in [KeError::Connect(ErrorKind::TimedOut.into()), certificate(CertificateCheck::Expired)] {
            assert_eq!(of(error, &both), None);
        }
        assert_eq!(of(KeError::Closed(Phase::Exchange), &[AeadId::SIV_CMAC_256]), None);
    }
}
