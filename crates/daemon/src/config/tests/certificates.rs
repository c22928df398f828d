//! Certificates of the key exchange: one pair, or tables.

use super::*;

const TABLE: &str = "[[nts.certificate]]\ncertificate-chain = \"/a/c\"\nprivate-key = \"/a/k\"\n";

#[test]
fn tables_are_read_in_their_order_and_the_short_form_is_one_of_them() {
    let text = format!(
        "[nts]\n{TABLE}[[nts.certificate]]\ncertificate-chain = \"/b/c\"\nprivate-key = \"/b/k\"\n\
         names = [\"B.example.\", \"*.b.example\"]\n"
    );
    let config = parse(&text).unwrap();
    let [first, second] = &config.exchange().unwrap().certificates[..] else { panic!("two tables") };
    assert_eq!((first.table, &first.names), ("nts.certificate", &None));
    assert_eq!(second.names.as_ref().unwrap(), &["b.example", "*.b.example"]);
    let files: Vec<String> = config.files().into_iter().map(|(key, _)| key).collect();
    assert_eq!(files, ["nts.certificate.certificate-chain", "nts.certificate.private-key"].repeat(2));
    let short = parse("[nts]\ncertificate-chain = \"/a/c\"\nprivate-key = \"/a/k\"\n").unwrap();
    let [pair] = &short.exchange().unwrap().certificates[..] else { panic!("one pair") };
    assert!(pair.table == "nts" && pair.is_same(first));
}

#[test]
fn handed_over_pairs_are_read_from_one_file_each() {
    let config = parse(&format!("[nts]\nhand-over = \"/run/authentick\"\n{TABLE}")).unwrap();
    let pair = &config.exchange().unwrap().certificates[0];
    let file = pair.handed_over.as_ref().unwrap();
    assert!(file.starts_with("/run/authentick") && file.to_str().unwrap().contains("/a-"), "{file:?}");
    assert_eq!(config.files(), [("nts.hand-over".to_owned(), file.as_path())]);
}

#[test]
fn mistakes_in_certificates_name_key_value_and_remedy() {
    for (text, parts) in [
        (
            format!("[nts]\nprivate-key = \"/k\"\n{TABLE}"),
            &["nts.private-key = \"/k\"", "beside tables [[nts.certificate]]", "or remove the tables"][..],
        ),
        (
            format!("[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n{TABLE}"),
            &["nts.certificate-chain = \"/c\"", "beside tables"],
        ),
        ("[nts]\ncertificate = []".to_owned(), &["nts.certificate", "no certificate", "private-key"]),
        (format!("[nts]\n{TABLE}{TABLE}"), &["nts.certificate = \"/a/c\"", "listed twice", "keep one"]),
        (format!("[nts]\n{}", TABLE.repeat(65)), &["nts.certificate = \"65\"", "more than 64"]),
        (format!("[nts]\n{TABLE}names = []"), &["nts.certificate.names", "leave names out"]),
        (format!("[nts]\n{TABLE}names = [\"a b\"]"), &["nts.certificate.names = \"a b\"", "host name"]),
        (format!("[nts]\n{TABLE}names = [\"a.*.b\"]"), &["nts.certificate.names", "no name of the DNS"]),
        (format!("[nts]\n{TABLE}names = [\"192.0.2.1\"]"), &["192.0.2.1", "clients name no addresses"]),
        (format!("[nts]\n{TABLE}names = [\"a\", \"A.\"]"), &["names = \"a\"", "listed twice"]),
        (
            "[nts]\n[[nts.certificate]]\nprivate-key = \"/k\"".to_owned(),
            &["nts.certificate.certificate-chain: missing"],
        ),
        (format!("[nts]\n{TABLE}").replace("/a/k", "k"), &["nts.certificate.private-key", "slash"]),
        (format!("[nts]\nhand-over = \"run\"\n{TABLE}"), &["nts.hand-over = \"run\"", "slash"]),
        (format!("[nts]\nke-listen = []\n{TABLE}"), &["nts.certificate: without effect"]),
        ("[nts]\nke-listen = []\nhand-over = \"/run\"".to_owned(), &["nts.hand-over: without effect"]),
    ] {
        assert_names(&text, parts);
    }
}
