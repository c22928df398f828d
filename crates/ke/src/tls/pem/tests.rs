//! Inputs that a reader of PEM meets: what it takes, and what it refuses by its line.

use super::super::private_key;
use super::*;

const A: [u8; 3] = [1, 2, 3];
const B: [u8; 3] = [4, 5, 6];

fn block(label: &str, text: &str) -> String {
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

fn a() -> String {
    block("CERTIFICATE", "AQID")
}

fn b() -> String {
    block("CERTIFICATE", "BAUG")
}

fn read(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    certificates(pem).map(|found| found.iter().map(|der| der.to_vec()).collect()).map_err(String::from)
}

#[test]
fn each_block_of_an_odd_but_whole_text_is_read() {
    let key = block("PRIVATE KEY", "BwcH");
    let latin: Vec<u8> =
        [&b"# Auskunft: M\xfcnchen\n"[..], a().as_bytes(), b"\xfc\n", b().as_bytes()].concat();
    let both = a() + &b();
    for (case, pem) in [
        ("plain", both.clone().into_bytes()),
        ("no line end at the end", both.trim_end().as_bytes().to_vec()),
        ("glued blocks", (a().trim_end().to_owned() + &b()).into_bytes()),
        ("glued behind a key", (a() + key.trim_end() + &b()).into_bytes()),
        ("byte order mark", format!("\u{feff}{both}").into_bytes()),
        ("byte order mark in the middle", format!("{}\u{feff}{}", a(), b()).into_bytes()),
        ("glued with a byte order mark", format!("{}\u{feff}{}", a().trim_end(), b()).into_bytes()),
        ("line ends of Windows", both.replace('\n', "\r\n").into_bytes()),
        ("line ends of old systems", both.replace('\n', "\r").into_bytes()),
        ("space at the ends of lines", both.replace('\n', " \t\n").into_bytes()),
        ("indented", format!("  {}", both.replace('\n', "\n  ")).into_bytes()),
        ("empty lines in a block", both.replace("AQID", "AQ\n\nID").into_bytes()),
        ("base64 in one line with its boundaries", both.replace('\n', " ").into_bytes()),
        ("boundary behind base64", both.replace("\n-----END", "-----END").into_bytes()),
        ("Latin-1 text", latin),
        (
            "text of openssl x509 -text",
            format!("Certificate:\n  Data:\n{}subject=CN = b\n{}", a(), b()).into_bytes(),
        ),
        ("dashes as text", format!("----- a -----\n{}-----\n{}", a(), b()).into_bytes()),
        ("boundary within a sentence", format!("see -----BEGIN CERTIFICATE----- below\n{both}").into_bytes()),
        (
            "block in a comment",
            format!("{}{both}", block("CERTIFICATE", "////").replace("\n-", "\n# -").replacen('-', "# -", 1))
                .into_bytes(),
        ),
        ("request", (a() + &block("CERTIFICATE REQUEST", "////") + &b()).into_bytes()),
        ("parameters", (a() + &block("EC PARAMETERS", "BgUrgQQA") + &b()).into_bytes()),
        ("list of revoked ones", (a() + &block("X509 CRL", "////") + &b()).into_bytes()),
        (
            "nothing of a key is read",
            (a() + &block("RSA PRIVATE KEY", "no base64: at all") + &b()).into_bytes(),
        ),
    ] {
        assert_eq!(read(&pem), Ok(vec![A.to_vec(), B.to_vec()]), "{case}");
    }
}

#[test]
fn text_that_is_not_understood_is_refused_by_its_line() {
    let cut = |text: String, from: &str| text.split_once(from).unwrap().0.to_owned();
    for (case, pem, part) in [
        ("empty", String::new(), "no PEM certificate; name"),
        ("base64 alone", "AQID".to_owned(), "no PEM certificate; name"),
        (
            "key alone",
            block("PRIVATE KEY", "BwcH"),
            "no PEM certificate (line 1: -----BEGIN PRIVATE KEY-----)",
        ),
        (
            "no end",
            cut(a() + &b(), "\n-----END CERTIFICATE-----\n-----BEGIN"),
            "line 1: -----BEGIN CERTIFICATE----- has no end",
        ),
        (
            "no end of the second",
            (a() + &b()).trim_end_matches("-----END CERTIFICATE-----\n").to_owned(),
            "line 4: -----BEGIN CERTIFICATE----- has no end",
        ),
        (
            "no end before the next",
            a().replace("-----END CERTIFICATE-----\n", "") + &b(),
            "line 1: -----BEGIN CERTIFICATE----- has no end before line 3",
        ),
        (
            "four dashes at the end",
            a().replace("-----END CERTIFICATE-----", "-----END CERTIFICATE----"),
            "line 1: -----BEGIN CERTIFICATE----- has no end before line 3",
        ),
        ("four dashes at the beginning", a() + &b()[1..], "line 6: -----END without its -----BEGIN"),
        (
            "beginning without its dashes",
            a() + &b().replacen("E-----\n", "E\n", 1),
            "line 4: -----BEGIN without five dashes",
        ),
        (
            "nine dashes between",
            a().trim_end().to_owned() + &b()[1..],
            "line 5: -----END without its -----BEGIN",
        ),
        (
            "text before a beginning",
            a() + "subject=b" + &b(),
            "line 6: its -----BEGIN is within other text, on line 4",
        ),
        (
            "end of another kind",
            a() + &b().replace("END CERTIFICATE", "END X509 CRL"),
            "line 6: -----END X509 CRL----- after -----BEGIN CERTIFICATE-----",
        ),
        ("wrong base64", a() + &b().replace("BAUG", "BAU?"), "line 4: the block's base64 is wrong"),
        ("base64 that is cut off", a() + &b().replace("BAUG", "BAU"), "line 4: the block's base64 is wrong"),
        ("empty block", a() + &b().replace("BAUG", ""), "line 4: the block is empty"),
        ("quoted mail", a() + &b().replace('\n', "\n> "), "line 4: "),
        ("lines of Windows", (a() + &b().replace("BAUG", "?")).replace('\n', "\r\n"), "line 4: "),
        ("lines of old systems", (a() + &b().replace("BAUG", "?")).replace('\n', "\r"), "line 4: "),
        (
            "broken block of another kind",
            block("PRIVATE KEY", "B").replace("END", "DNE") + &a(),
            "line 1: -----BEGIN PRIVATE KEY----- has no end before line 3",
        ),
    ] {
        let message = read(pem.as_bytes()).expect_err(case);
        assert!(message.contains(part), "{case}: {message}");
        assert!(message.contains("; "), "{case} has a remedy: {message}");
    }
}

#[test]
fn certificate_in_another_form_is_refused_with_its_remedy() {
    for (case, pem, part) in [
        (
            "form of OpenSSL's trust",
            a() + &block("TRUSTED CERTIFICATE", "BAUG"),
            "line 4: -----BEGIN TRUSTED CERTIFICATE-----; convert each such block: openssl x509 -in",
        ),
        (
            "old form",
            a() + &block("X509 CERTIFICATE", "BAUG"),
            "line 4: -----BEGIN X509 CERTIFICATE-----; convert each such block: openssl x509 -in",
        ),
        ("PKCS #7", block("PKCS7", "BAUG"), "line 1: -----BEGIN PKCS7-----; convert it: openssl pkcs7"),
        (
            "misspelled",
            a() + &block("CERTIFCATE", "BAUG"),
            "line 4: -----BEGIN CERTIFCATE-----, which is not a known kind",
        ),
        (
            "small letters",
            a() + &block("certificate", "BAUG"),
            "line 4: -----BEGIN ...-----, which is not a known kind",
        ),
    ] {
        let message = read(pem.as_bytes()).expect_err(case);
        assert!(message.contains(part), "{case}: {message}");
    }
    let utf_16: Vec<u8> = "\u{feff}-----BEGIN".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(read(&utf_16).unwrap_err().contains("UTF-16"));
    assert!(read(b"\x30\x82\x01\x01").unwrap_err().contains("openssl x509 -in"));
}

#[test]
fn pin_is_certificates_or_one_public_key() {
    let key = block("PUBLIC KEY", "AQID");
    assert_eq!(pinned(key.as_bytes()), Ok(Pinned::PublicKey(A.to_vec())));
    let marked = format!("\u{feff}M\u{fc}nchen\r\n{}", key.replace('\n', "\r\n"));
    assert_eq!(pinned(marked.as_bytes()), Ok(Pinned::PublicKey(A.to_vec())));
    let text = key.clone() + &a();
    assert_eq!(pinned(text.as_bytes()), Ok(Pinned::Certificates(certificates(a().as_bytes()).unwrap())));
    for (pem, part) in [
        (String::new(), "no PEM certificate or public key"),
        (key.clone() + &key, "line 4: a second public key"),
        (key.clone() + &a().replace("AQID", "?"), "line 4: the block's base64 is wrong"),
        (key.clone() + &block("TRUSTED CERTIFICATE", "AQID"), "TRUSTED CERTIFICATE"),
        (block("RSA PUBLIC KEY", "AQID"), "openssl rsa -RSAPublicKey_in"),
        (key.replace("AQID", "?"), "broken PEM public key: line 1"),
    ] {
        let message = String::from(pinned(pem.as_bytes()).unwrap_err());
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn certificates_are_written_as_they_were_read() {
    let found = certificates((a() + &b()).as_bytes()).unwrap();
    assert_eq!(to_pem(&found), a() + &b());
}

#[test]
fn no_text_makes_a_reader_panic() {
    let parts = [
        "-----BEGIN ",
        "-----END ",
        "-----",
        "CERTIFICATE",
        "PRIVATE KEY",
        "\n",
        "\r",
        "\u{feff}",
        "AQID",
        "-",
        "#",
        ":",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text += parts[(state >> 33) as usize % parts.len()];
        }
        let _ = (certificates(text.as_bytes()), pinned(text.as_bytes()), private_key(text.as_bytes()));
    }
}

#[test]
fn contents_of_a_text_are_those_of_its_blocks() {
    let key = block("EC PRIVATE KEY", "BwcH");
    let of = |pem: &str| {
        PemContents::of(pem.as_bytes()).map(|found| (found.has_certificate, found.has_private_key))
    };
    for (pem, expected) in [
        (a(), Some((true, false))),
        (block("TRUSTED CERTIFICATE", "AQID"), Some((true, false))),
        (key.clone(), Some((false, true))),
        (block("ENCRYPTED PRIVATE KEY", "BwcH"), Some((false, true))),
        (a() + &key, Some((true, true))),
        (block("PUBLIC KEY", "AQID"), Some((false, false))),
        ("text".to_owned(), None),
        (a() + "-----BEGIN CERTIFICATE-----\nAQID\n", None),
    ] {
        assert_eq!(of(&pem), expected, "{pem}");
    }
}
