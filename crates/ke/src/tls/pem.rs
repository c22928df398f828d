//! PEM text (RFC 7468), the one reader for chains, keys, authorities and pins.
//!
//! The text is octets, not UTF-8: a byte order mark, comments in any encoding and line ends of any system are taken.
//! No block is passed over in silence: one that is cut off, damaged, of an unknown kind, or a certificate in another
//! form refuses the text by its line. Two blocks without a line end between them, as `cat` of two files leaves them,
//! are two blocks. Known blocks of other kinds (keys beside certificates, parameters, requests) are skipped.

use base64ct::{Base64, Encoding};
use rustls::pki_types::CertificateDer;
use thiserror::Error;
use zeroize::Zeroizing;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Characters of base64 in a line. RFC 7468 section 2.
pub(super) const LINE_SIZE: usize = 64;
/// Octets of a label; the longest that is in use has 26.
const LABEL_SIZE_MAX: usize = 40;

/// A defect of a file with certificates or a key, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct Defect {
    /// The fault, without the file's name.
    pub problem: String,
    /// An instruction to the user.
    pub remedy: String,
}

impl Defect {
    /// A defect with these texts.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Defect { problem: problem.into(), remedy: remedy.into() }
    }
}

impl From<Defect> for String {
    fn from(defect: Defect) -> Self {
        let Defect { problem, remedy } = defect;
        format!("{problem}; {remedy}")
    }
}

/// The certificates in a PEM text, at least one, in its order.
///
/// # Errors
/// If there is none, or a block that is not understood.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Defect> {
    let (mut found, mut other) = (Vec::new(), None);
    for block in Blocks::of(pem) {
        let block = block.map_err(Broken::of_certificate)?;
        match kind(block.label) {
            Kind::Certificate => found.push(block.decode().map_err(Broken::of_certificate)?.into()),
            Kind::OtherForm(remedy) => return Err(Defect::new(block.title(), remedy)),
            Kind::Unknown => {
                let problem = format!("{}, which is not a known kind", block.title());
                return Err(Defect::new(problem, "remove the block, or correct its first and last line"));
            }
            Kind::Other => other = other.or(Some(block)),
        }
    }
    match found.is_empty() {
        true => Err(nothing("certificate", pem, other.as_ref())),
        false => Ok(found),
    }
}

/// Content of a file with what a client pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// Certificates, at least one.
    Certificates(Vec<CertificateDer<'static>>),
    /// A SubjectPublicKeyInfo, in DER.
    PublicKey(Vec<u8>),
}

/// The certificates in a PEM text, or else its one public key.
///
/// # Errors
/// If it has neither, several public keys, or a block that is not understood.
pub fn pinned(pem: &[u8]) -> Result<Pinned, Defect> {
    let keys = |label: &'static [u8]| {
        Blocks::of(pem).filter_map(Result::ok).filter(move |block| block.label == label)
    };
    let is_certificate = |block: Result<Block<'_>, Broken>| {
        block.map_or(true, |block| !matches!(kind(block.label), Kind::Other))
    };
    if Blocks::of(pem).any(is_certificate) {
        return certificates(pem).map(Pinned::Certificates);
    }
    if let Some(block) = keys(b"RSA PUBLIC KEY").next() {
        return Err(Defect::new(
            block.title(),
            "convert it: openssl rsa -RSAPublicKey_in -pubout -in FILE -out NEW",
        ));
    }
    let mut keys = keys(b"PUBLIC KEY");
    match (keys.next(), keys.next()) {
        (None, _) => Err(nothing("certificate or public key", pem, None)),
        (Some(key), None) => {
            key.decode().map(Pinned::PublicKey).map_err(|broken| broken.of("broken PEM public key"))
        }
        (Some(_), Some(second)) => {
            Err(Defect::new(format!("line {}: a second public key", second.line), "keep one"))
        }
    }
}

/// Presence of certificates and private keys in a PEM text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PemContents {
    /// A certificate, in any form.
    pub has_certificate: bool,
    /// A private key, of any kind, encrypted or not.
    pub has_private_key: bool,
}

impl PemContents {
    /// The contents of a text; `None` if a block is broken, or there is none.
    #[must_use]
    pub fn of(pem: &[u8]) -> Option<Self> {
        let blocks =
            Blocks::of(pem).collect::<Result<Vec<_>, _>>().ok().filter(|blocks| !blocks.is_empty())?;
        let is_certificate =
            |block: &Block<'_>| matches!(kind(block.label), Kind::Certificate | Kind::OtherForm(_));
        Some(PemContents {
            has_certificate: blocks.iter().any(is_certificate),
            has_private_key: blocks.iter().any(|block| block.label.ends_with(b"PRIVATE KEY")),
        })
    }
}

/// Certificates as a PEM text without anything else.
#[must_use]
pub fn to_pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut pem = Vec::new();
    certificates.iter().for_each(|certificate| push(&mut pem, "CERTIFICATE", certificate));
    String::from_utf8(pem).expect("base64 and labels are ASCII")
}

/// Appends a block to a text.
pub(super) fn push(pem: &mut Vec<u8>, label: &str, der: &[u8]) {
    let mut text = Zeroizing::new(vec![0; der.len().div_ceil(3) * 4]);
    Base64::encode(der, &mut text).expect("there is room for it");
    for part in ["-----BEGIN ", label, "-----\n"] {
        pem.extend_from_slice(part.as_bytes());
    }
    for line in text.chunks(LINE_SIZE) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    for part in ["-----END ", label, "-----\n"] {
        pem.extend_from_slice(part.as_bytes());
    }
}

/// Treatment of a block by a reader of certificates.
enum Kind {
    Certificate,
    /// Certificates in another form, and how to convert them.
    OtherForm(&'static str),
    /// Known, and not a certificate.
    Other,
    Unknown,
}

fn kind(label: &[u8]) -> Kind {
    const OTHER: [&[u8]; 5] =
        [b"PRIVATE KEY", b"PUBLIC KEY", b"PARAMETERS", b"CERTIFICATE REQUEST", b"X509 CRL"];
    match label {
        b"CERTIFICATE" => Kind::Certificate,
        b"TRUSTED CERTIFICATE" | b"X509 CERTIFICATE" | b"X.509 CERTIFICATE" => {
            Kind::OtherForm("convert each such block: openssl x509 -in FILE -out NEW")
        }
        b"PKCS7" | b"PKCS #7 SIGNED DATA" | b"CMS" => {
            Kind::OtherForm("convert it: openssl pkcs7 -print_certs -in FILE -out NEW")
        }
        _ if OTHER.iter().any(|end| label.ends_with(end)) => Kind::Other,
        _ => Kind::Unknown,
    }
}

/// The defect of a text in which nothing of the kind was found.
pub(super) fn nothing(wanted: &str, pem: &[u8], other: Option<&Block<'_>>) -> Defect {
    let plain = format!("no PEM {wanted}");
    match pem {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Defect::new(format!("{plain}: UTF-16 text"), "save it as ASCII or UTF-8")
        }
        // A SEQUENCE with a length of two octets.
        [0x30, 0x82, ..] => {
            let remedy = "convert it: openssl x509 -in FILE -out NEW (a key: openssl pkey -in FILE -out NEW)";
            Defect::new(format!("{plain}: DER, not PEM"), remedy)
        }
        _ => {
            let found = other.map_or_else(String::new, |block| format!(" ({})", block.title()));
            Defect::new(plain + &found, format!("name a PEM file with a {wanted}"))
        }
    }
}

/// A block: its label, and the text between its two boundaries.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// Number of the line with its beginning, from 1.
    pub(super) line: usize,
    pub(super) label: &'a [u8],
    pub(super) body: &'a [u8],
}

impl Block<'_> {
    /// Place and label, for a message.
    pub(super) fn title(&self) -> String {
        format!("line {}: {}", self.line, boundary("BEGIN", self.label))
    }

    /// The octets, of what is not secret.
    fn decode(&self) -> Result<Vec<u8>, Broken> {
        let text: Vec<u8> = self.body.iter().copied().filter(|octet| !octet.is_ascii_whitespace()).collect();
        let mut der = vec![0; text.len()];
        let size = Base64::decode(&text, &mut der).map(<[u8]>::len);
        der.truncate(size.unwrap_or(0));
        match size {
            Ok(1..) => Ok(der),
            Ok(0) => Err(Broken { line: self.line, problem: "the block is empty".to_owned() }),
            Err(_) => Err(Broken { line: self.line, problem: "the block's base64 is wrong".to_owned() }),
        }
    }
}

/// A place at which a text is not PEM. The problem repeats nothing that may be secret.
#[derive(Debug)]
pub(super) struct Broken {
    line: usize,
    problem: String,
}

impl Broken {
    fn of_certificate(self) -> Defect {
        self.of("broken PEM certificate")
    }

    /// The defect of what should be there.
    pub(super) fn of(self, what: &str) -> Defect {
        let remedy = "copy the file again, as a whole, with each boundary on a line of its own";
        Defect::new(format!("{what}: line {}: {}", self.line, self.problem), remedy)
    }
}

/// A boundary as it stands in a file; its label only if it has a label's form, as other text may be secret.
fn boundary(word: &str, label: &[u8]) -> String {
    let is_plain =
        |octet: &u8| octet.is_ascii_uppercase() || octet.is_ascii_digit() || b" .#".contains(octet);
    let is_shown = label.len() <= LABEL_SIZE_MAX && label.iter().all(is_plain);
    let label = if is_shown { String::from_utf8_lossy(label) } else { "...".into() };
    format!("-----{word} {label}-----")
}

/// The blocks of a text, in their order; ends at the first that is broken.
pub(super) struct Blocks<'a> {
    pem: &'a [u8],
    /// Where to go on.
    at: usize,
    /// Where a boundary may stand: the beginning of a line, or the end of a block.
    fresh: usize,
    /// The line of a beginning that stands within other text, since the last block.
    stray: Option<usize>,
}

impl<'a> Blocks<'a> {
    pub(super) const fn of(pem: &'a [u8]) -> Self {
        Blocks { pem, at: 0, fresh: 0, stray: None }
    }

    /// Number of the line at an offset. A carriage return ends a line too, unless a line feed follows.
    fn line(&self, at: usize) -> usize {
        let ends = |pair: &[u8]| pair[0] == b'\n' || pair[0] == b'\r' && pair.get(1) != Some(&b'\n');
        1 + (0..at).filter(|&index| ends(&self.pem[index..self.pem.len().min(index + 2)])).count()
    }

    /// Whether nothing but space and byte order marks stand before an offset on its line, or after the last block.
    fn is_first(&self, at: usize) -> bool {
        let before = &self.pem[self.fresh..at];
        let line = before.iter().rposition(|octet| matches!(octet, b'\n' | b'\r')).map_or(0, |end| end + 1);
        let mut rest = before[line..].trim_ascii();
        while let Some(after) = rest.strip_prefix(BYTE_ORDER_MARK) {
            rest = after.trim_ascii();
        }
        rest.is_empty()
    }

    /// The label of a boundary whose word ends at `at`, and the offset after it.
    fn label(&self, at: usize) -> Option<(&'a [u8], usize)> {
        let rest = &self.pem[at..];
        let size = find(rest, DASHES)?;
        let label = &rest[..size];
        let is_one_line = !label.iter().any(|octet| matches!(octet, b'\n' | b'\r'));
        (size <= LABEL_SIZE_MAX && is_one_line).then_some((label, at + size + DASHES.len()))
    }

    fn broken(&self, at: usize, problem: impl Into<String>) -> Broken {
        Broken { line: self.line(at), problem: problem.into() }
    }

    /// The block whose beginning is at `begin`.
    fn block(&mut self, begin: usize) -> Result<Block<'a>, Broken> {
        let Some((label, start)) = self.label(begin + BEGIN.len()) else {
            return Err(self.broken(begin, "-----BEGIN without five dashes at the end of its line"));
        };
        let name = boundary("BEGIN", label);
        let Some(size) = find(&self.pem[start..], DASHES) else {
            return Err(self.broken(begin, format!("{name} has no end")));
        };
        let end = start + size;
        let after = self.pem[end..].strip_prefix(END).and_then(|_| self.label(end + END.len()));
        match after {
            Some((found, after)) if found == label => {
                (self.at, self.fresh, self.stray) = (after, after, None);
                Ok(Block { line: self.line(begin), label, body: &self.pem[start..end] })
            }
            Some((found, _)) => {
                let problem = format!("{} after {name}", boundary("END", found));
                Err(self.broken(end, problem))
            }
            None => {
                let line = self.line(end);
                Err(self.broken(begin, format!("{name} has no end before line {line}")))
            }
        }
    }

    fn step(&mut self) -> Option<Result<Block<'a>, Broken>> {
        loop {
            let at = self.at + find(&self.pem[self.at..], DASHES)?;
            let rest = &self.pem[at..];
            if rest.starts_with(BEGIN) {
                if self.is_first(at) {
                    return Some(self.block(at));
                }
                self.stray = self.stray.or_else(|| Some(self.line(at)));
            } else if rest.starts_with(END) && self.is_first(at) {
                let problem = match self.stray {
                    Some(line) => format!("its -----BEGIN is within other text, on line {line}"),
                    None => "-----END without its -----BEGIN".to_owned(),
                };
                return Some(Err(self.broken(at, problem)));
            }
            // Nothing else on this line is at its beginning, unless these dashes are more than five.
            let is_boundary = rest.starts_with(BEGIN) || rest.starts_with(END);
            let line_size = rest.iter().position(|octet| matches!(octet, b'\n' | b'\r'));
            self.at = if is_boundary { at + line_size.unwrap_or(rest.len()) } else { at + 1 };
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.step();
        if !matches!(item, Some(Ok(_))) {
            self.at = self.pem.len();
        }
        item
    }
}

/// Offset of the first occurrence.
fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests;
