//! What messages about form say, and that the table of keys is that of the fields.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::config::Config;

fn message(text: &str) -> String {
    Config::parse(Path::new("test.toml"), text).unwrap_err().to_string()
}

#[test]
fn wrong_forms_are_named_with_the_right_one() {
    for (text, expected) in [
        (
            "[server]\nlisten = \"0.0.0.0:123\"",
            "line 2: server.listen: invalid value \"0.0.0.0:123\": expected a list of texts; write listen = \
             [\"0.0.0.0:123\"]",
        ),
        (
            "[server]\nlisten = [123]",
            "server.listen: invalid value 123 in the list: expected text in quotation marks",
        ),
        (
            "[server]\nworkers = \"2\"",
            "server.workers: invalid value \"2\": expected a whole number; write workers = 2",
        ),
        ("[server]\nworkers = \"two\"", "expected a whole number; write workers = 0, for example"),
        ("[server]\nworkers = 1.5", "invalid number 1.5: expected a whole number"),
        (
            "[server]\nworkers = 9223372036854775808",
            "invalid number 9223372036854775808: expected one in range",
        ),
        (
            "[server]\nuser = 5",
            "server.user: invalid value 5: expected text in quotation marks; write user = \"5\"",
        ),
        ("[server]\nuser = [\"a\"]", "write user = \"a\""),
        ("[server]\ninterleaved = \"true\"", "expected true or false; write interleaved = true"),
        ("[server]\ninterleaved = 1", "invalid value 1: expected true or false"),
        (
            "[server]\nrate-limit = 10",
            "server.rate-limit: invalid value 10: expected a table; write [server.rate-limit]",
        ),
        (
            "[[server]]\nworkers = 1",
            "line 1: server: invalid value (a list of tables): expected a table; write [server]",
        ),
        ("server = 1", "server: invalid value 1: expected a table"),
        (
            "[server]\nreference = 1",
            "expected text in quotation marks or a table; write reference = \"kernel\"",
        ),
        ("[nts]\naeads = [\"15\"]", "nts.aeads: invalid value \"15\" in the list: expected a whole number"),
        ("[nts.certificate]\nnames = []", "write [[nts.certificate]] in place of [nts.certificate]"),
        ("[nts]\nke-limits = { timeout = 5 }", "nts.ke-limits.timeout: invalid value 5: expected text"),
        ("[nts]\nadvertise = [\"a\"]", "nts.advertise: invalid value \"a\" in the list: expected a table"),
        (
            "[symmetric]\n",
            "line 1: symmetric.keys: missing; add keys = \"/etc/authentick/keys\" to the table symmetric",
        ),
        (
            "\n[[nts.certificate]]\nprivate-key = \"/k\"",
            "line 2: nts.certificate.certificate-chain: missing; add",
        ),
        ("[fleet]\nid = \"x\"", "line 1: fleet.node: missing"),
    ] {
        let message = message(text);
        assert!(message.contains(expected), "{expected:?} is not in {message:?}");
    }
}

#[test]
fn unknown_keys_are_named_with_what_is_near() {
    for (text, expected) in [
        ("[server]\n\nlistne = []", "line 3: server.listne: unknown key; did you mean server.listen?"),
        ("[server]\nbatch_size = 1", "server.batch_size: unknown key; did you mean server.batch-size?"),
        ("[server]\nAllow = []", "did you mean server.allow?"),
        (
            "[server]\nreferense = { kernel = true }",
            "server.referense: unknown key; did you mean server.reference?",
        ),
        ("[server]\nreferense.kernel = true", "server.referense: unknown key; did you mean"),
        ("[server]\n[server.referense]\nkernel = true", "server.referense: unknown table; did you mean"),
        ("[server.referense.kernel]\na = true", "server.referense: unknown table; did you mean"),
        ("[[sever]]\na = true", "sever: unknown table; did you mean"),
        ("[severs]\n", "line 1: severs: unknown table; did you mean server?"),
        ("[server]\nke-listen = []", "server.ke-listen: unknown key; did you mean nts.ke-listen?"),
        ("listen = []", "listen: unknown key; did you mean server.listen?"),
        ("[nts]\ncookie-keys = { rotat = \"1d\" }", "did you mean nts.cookie-keys.rotate?"),
        (
            "[nts]\nadvertise = [{ host = \"a\" }]",
            "nts.advertise has the keys server, port, weight and member",
        ),
        ("[ntp]\n", "did you mean nts?"),
        ("[wholly-unlike]\n", "tables are server, nts, symmetric, antp, fleet, metrics and health"),
        ("[antp]\nenabled = true", "did you mean antp.enable?"),
    ] {
        let message = message(text);
        assert!(message.contains(expected), "{expected:?} is not in {message:?}");
    }
}

#[test]
fn mistakes_in_syntax_are_named_with_the_line() {
    for (text, parts) in [
        ("[server]\nuser = root\n", &["line 2", "`user = root`", "quotation marks"][..]),
        ("[server]\nworkers = 1\nworkers = 2", &["line 3", "the key workers is there twice", "keep one"]),
        (
            "[server]\n[nts]\n[server]\nuser = \"a\"",
            &["line 3", "the table [server] is there twice", "below the first"],
        ),
        ("[server\n", &["line 1", "`[server`", "add the missing ]"]),
        ("[server]\nlisten = [\"a\"\nuser = \"b\"", &["line 2", "the list of listen is not closed"]),
        ("[server]\nlisten = [\"a\"", &["line 2", "the list of listen is not closed", "missing ]"]),
        ("[server]\nlisten = [\n\"a\",\n[nts]\n", &["line 2", "the list of listen is not closed"]),
        ("[server]\nlisten = [\n\"a\", # ]\n", &["line 2", "the list of listen is not closed"]),
        ("[server]\nlisten = [\n\"a\"\n\"b\"]\n", &["line 4", "add the missing ,"]),
        ("[server]\nuser \"a\"", &["line 2", "add the missing ="]),
        ("[server]\nuser =", &["line 2", "invalid TOML"]),
        ("[server]\nlisten = 0.0.0.0:123", &["line 2", "`listen = 0.0.0.0:123`"]),
    ] {
        let message = message(text);
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message:?}");
    }
}

/// The names of a table's keys and those of tables in it.
fn names(keys: Keys, names: &mut BTreeSet<&'static str>) {
    for key in keys {
        names.insert(key.name);
        key.form.keys().into_iter().for_each(|keys| self::names(keys, names));
    }
}

#[test]
fn every_field_is_a_key_and_every_key_a_field() {
    let fields = include_str!("../raw.rs").lines().filter_map(|line| line.trim().strip_prefix("pub(super) "));
    let fields = fields.filter_map(|field| Some(field.split_once(':')?.0.replace('_', "-")));
    let mut known = BTreeSet::new();
    names(TOP, &mut known);
    let fields: BTreeSet<String> = fields.collect();
    assert_eq!(fields.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
}

#[test]
fn examples_have_the_form_of_their_key() {
    fn look(place: &str, keys: Keys) {
        for key in keys {
            let place = inner(place, key.name);
            if !key.example.is_empty() {
                let text = format!("{} = {}", key.name, key.example);
                let table = DeTable::parse(&text).unwrap();
                let value = &table.get_ref()[key.name];
                let checker = Checker { text: &|_| String::new() };
                checker.value(&place, value, key).unwrap_or_else(|misfit| panic!("{place}: {misfit:?}"));
            }
            key.form.keys().into_iter().for_each(|keys| look(&place, keys));
        }
    }
    look("", TOP);
}

#[test]
fn distance_counts_letters_and_swaps() {
    for (from, to, expected) in
        [("", "", 0), ("a", "", 1), ("listen", "listne", 1), ("listen", "liste", 1), ("abc", "xyz", 3)]
    {
        assert_eq!(distance(from, to), expected, "{from} {to}");
    }
}
