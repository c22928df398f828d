//! What a user can do about a client's failure, in the words of the command line.

use authentick_client::antp::ocsp::OcspError;
use authentick_client::{Error, Why};
use authentick_ke::client::{CertificateCheck, KeError, Phase};
use authentick_wire::ke::AeadId;

/// What may help, if anything is known to.
pub(crate) fn remedy(error: &Error) -> Option<String> {
    match &error.why {
        // cfnts does so when 30 is offered.
        Why::KeyExchange { error: KeError::Closed(Phase::Exchange), offered }
            if *offered != [AeadId::SIV_CMAC_256] =>
        {
            Some(
                "some do so when they are offered an algorithm that they do not know: try --aead 15"
                    .to_owned(),
            )
        }
        Why::KeyExchange { error: KeError::Certificate(CertificateCheck::Issuer, _), .. } => {
            let remedy = "name the file of its authority with --ca FILE; if that is done, the server may not send \
                          its intermediate certificates";
            Some(remedy.to_owned())
        }
        Why::KeyExchange { error: KeError::Certificate(CertificateCheck::Name, _), .. } => {
            Some("give the name that it is for with --server-name NAME".to_owned())
        }
        Why::KeyExchange { error: KeError::Connect(error), .. }
            if error.kind() == std::io::ErrorKind::ConnectionRefused =>
        {
            let remedy = "no key exchange is there: give its port with --ke-port N, or ask without NTS, as with \
                          query --auth plain";
            Some(remedy.to_owned())
        }
        Why::KeyExchange { error: KeError::Tls(rustls::Error::InvalidMessage(_)), .. } => {
            Some("what is on this port may not speak TLS; give another with --ke-port N".to_owned())
        }
        Why::Ocsp(OcspError::NoResponder(_) | OcspError::NotPlain(..) | OcspError::NoListener(_)) => {
            Some("name one with --ocsp URL".to_owned())
        }
        Why::Store(error) => Some(error.remedy()),
        Why::NoneResponded(_)
        | Why::Unresolved(_)
        | Why::KeyExchange { .. }
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
    fn server_that_closes_on_an_unknown_algorithm_is_offered_the_one_that_all_have() {
        let of = |offered: &[AeadId]| {
            let error = KeError::Closed(Phase::Exchange);
            let place = Place::KeyExchange { host: "ntp.test".to_owned(), port: 4460 };
            remedy(&Error { place, why: Why::KeyExchange { error, offered: offered.to_vec() } })
        };
        assert!(of(&[AeadId::AES_128_GCM_SIV, AeadId::SIV_CMAC_256]).unwrap().ends_with("try --aead 15"));
        assert_eq!(of(&[AeadId::SIV_CMAC_256]), None);
    }
}
