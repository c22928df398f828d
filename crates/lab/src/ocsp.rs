//! OCSP for the lab's authority: certificates that name a responder, the responder, and what it says.
//!
//! The responder is a listener on loopback that hands each request to a function, so that it can be replayed, refused
//! or answered with anything. Answers come from `openssl ocsp`, a responder of others'; or from an [`OcspSigner`],
//! which signs at any time, where openssl's is that of the machine. openssl's own listener is not used: it takes no
//! address, and listens on all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use der::asn1::{BitString, GeneralizedTime, Ia5String, ObjectIdentifier};
use der::{Decode, Encode};
use rcgen::{CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, KeyPair, SigningKey};
use x509_cert::Certificate;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AccessDescription, AuthorityInfoAccessSyntax};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse, ResponderId, ResponseData,
    SingleResponse, Version,
};

use crate::certificates::Lab;
use crate::process::text;
use crate::skip::skip;

/// How long a client may take to send its request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The extension of a certificate that names its responder: Authority Information Access.
///
/// # Panics
/// If the URL is not ASCII.
#[must_use]
pub fn access(url: &str) -> CustomExtension {
    let responder = AccessDescription {
        access_method: ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1"),
        access_location: GeneralName::UniformResourceIdentifier(Ia5String::new(url).unwrap()),
    };
    let content = AuthorityInfoAccessSyntax(vec![responder]).to_der().unwrap();
    CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], content)
}

/// What a listener sends back.
#[derive(Clone, Debug)]
pub enum Reply {
    /// An OCSP response, or what stands in for one.
    Octets(Vec<u8>),
    /// Another HTTP status line, such as `503 Service Unavailable`, with further header lines.
    Status(&'static str),
    /// Nothing; the connection stays open for this long.
    Silence(Duration),
}

/// A listener for OCSP over HTTP on loopback, until it is dropped.
#[derive(Debug)]
pub struct Responder {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Answers each request by what `reply` makes of it.
    ///
    /// # Panics
    /// If there is no port.
    pub fn start(mut reply: impl FnMut(&[u8]) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (seen, over) = (Arc::clone(&requests), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let Some(request) = receive(&mut stream) else { continue };
                seen.lock().unwrap().push(request.clone());
                send(&mut stream, reply(&request));
            }
        });
        Responder { address, requests, is_over, thread: Some(thread) }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/ocsp", self.address)
    }

    /// All requests so far.
    ///
    /// # Panics
    /// If the listener has panicked.
    #[must_use]
    pub fn requests(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// The body of a POST; `None` if the client went away.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut octets = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let size = stream.read(&mut buffer).ok().filter(|&size| size > 0)?;
        octets.extend_from_slice(&buffer[..size]);
        let Some(end) = octets.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = str::from_utf8(&octets[..end]).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("post ") && head.contains("application/ocsp-request"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        let length: usize = length.trim().parse().unwrap();
        if octets.len() >= end + 4 + length {
            return Some(octets[end + 4..].to_vec());
        }
    }
}

/// A client that has heard enough may be gone already.
fn send(stream: &mut TcpStream, reply: Reply) {
    match reply {
        Reply::Octets(octets) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n",
                octets.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &octets].concat());
        }
        Reply::Status(line) => {
            let head = format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
        }
        Reply::Silence(time) => std::thread::sleep(time),
    }
}

/// `openssl ocsp` as the responder of the lab's authority, with a certificate of its own; it says good of every
/// certificate that was not revoked.
#[derive(Clone, Debug)]
pub struct Openssl {
    folder: PathBuf,
}

impl Openssl {
    /// The responder, if openssl is installed; says that the test is skipped if not.
    #[must_use]
    pub fn find(lab: &Lab) -> Option<Self> {
        Openssl::with_delegate(lab, |_| {})
    }

    /// The same; the responder's certificate is changed before it is signed.
    ///
    /// # Panics
    /// If that cannot be made as changed.
    #[must_use]
    pub fn with_delegate(lab: &Lab, change: impl FnOnce(&mut CertificateParams)) -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            skip("openssl is not installed");
            return None;
        }
        let folder = lab.path().join("ocsp");
        std::fs::create_dir(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "authentick test responder");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::OcspSigning];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, lab.authority()).unwrap();
        std::fs::write(folder.join("responder.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.join("responder-key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("ca.pem"), lab.authority().pem()).unwrap();
        std::fs::write(folder.join("index.txt"), "").unwrap();
        Some(Openssl { folder })
    }

    /// Lists the certificate in this PEM file as good, or revoked since 2026 as its key was compromised.
    ///
    /// # Panics
    /// If the file has no certificate.
    pub fn list(&self, certificate: &std::path::Path, is_revoked: bool) {
        let mut openssl = Command::new("openssl");
        let output = openssl.args(["x509", "-noout", "-serial", "-in"]).arg(certificate).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let serial = said.trim().strip_prefix("serial=").unwrap_or_else(|| panic!("{}", text(&output)));
        let (status, revoked) = match is_revoked {
            true => ("R", "260101000000Z,keyCompromise"),
            false => ("V", ""),
        };
        // Status, end of validity, revocation, number, file, subject. openssl-ca(1).
        let line = format!("{status}\t490101000000Z\t{revoked}\t{serial}\tunknown\t/CN=ntp.test\n");
        std::fs::write(self.folder.join("index.txt"), line).unwrap();
    }

    /// The answer to a request.
    ///
    /// # Panics
    /// If openssl makes none.
    #[must_use]
    pub fn answer(&self, request: &[u8]) -> Vec<u8> {
        std::fs::write(self.folder.join("request.der"), request).unwrap();
        let output = Command::new("openssl")
            .args(["ocsp", "-index", "index.txt", "-CA", "ca.pem", "-rsigner", "responder.pem"])
            .args(["-rkey", "responder-key.pem", "-reqin", "request.der", "-respout", "response.der"])
            .args(["-ndays", "1"])
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        std::fs::read(self.folder.join("response.der")).unwrap()
    }

    /// The answer to a request without its nonce: as responders make them in advance.
    ///
    /// # Panics
    /// If the request cannot be read, or openssl makes no answer.
    #[must_use]
    pub fn answer_without_nonce(&self, request: &[u8]) -> Vec<u8> {
        let mut request = OcspRequest::from_der(request).unwrap();
        assert!(request.tbs_request.request_extensions.take().is_some());
        self.answer(&request.to_der().unwrap())
    }
}

impl Lab {
    /// The authority as its own responder.
    #[must_use]
    pub fn ocsp_signer(&self) -> OcspSigner {
        OcspSigner::new(self.authority().der(), self.authority().key())
    }
}

/// An authority that answers by itself.
#[derive(Debug)]
pub struct OcspSigner {
    name: ResponderId,
    key: KeyPair,
}

impl OcspSigner {
    /// The holder of this certificate, which is in DER, and key of P-256.
    ///
    /// # Panics
    /// If the certificate cannot be read.
    #[must_use]
    pub fn new(certificate: &[u8], key: &KeyPair) -> Self {
        let certificate = Certificate::from_der(certificate).unwrap();
        let key = KeyPair::try_from(key.serialize_der()).unwrap();
        OcspSigner { name: ResponderId::ByName(certificate.tbs_certificate.subject), key }
    }

    /// Says that all certificates in a request are good, as known at this time in Unix seconds.
    ///
    /// # Panics
    /// If the request cannot be read.
    #[must_use]
    pub fn answer(&self, request: &[u8], unix_seconds: u64) -> Vec<u8> {
        let request = OcspRequest::from_der(request).unwrap().tbs_request;
        let time = GeneralizedTime::from_unix_duration(Duration::from_secs(unix_seconds)).unwrap();
        let time = OcspGeneralizedTime(time);
        let answers = request.request_list.into_iter().map(|asked| SingleResponse {
            cert_id: asked.req_cert,
            cert_status: CertStatus::good(),
            this_update: time,
            next_update: None,
            single_extensions: None,
        });
        let data = ResponseData {
            version: Version::V1,
            responder_id: self.name.clone(),
            produced_at: time,
            responses: answers.collect(),
            response_extensions: request.request_extensions,
        };
        let signature = self.key.sign(&data.to_der().unwrap()).unwrap();
        let ecdsa_sha256 = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
        let basic = BasicOcspResponse {
            tbs_response_data: data,
            signature_algorithm: AlgorithmIdentifierOwned { oid: ecdsa_sha256, parameters: None },
            signature: BitString::from_bytes(&signature).unwrap(),
            certs: None,
        };
        OcspResponse::successful(basic).unwrap().to_der().unwrap()
    }
}
