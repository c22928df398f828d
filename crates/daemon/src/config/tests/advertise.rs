//! The servers that clients are sent to.

use authentick_fleet::Name;

use super::*;

const NTS: &str = "[nts]\ncertificate-chain = \"/c\"\nprivate-key = \"/k\"\n";

fn advertised(line: &str) -> Vec<Advertised> {
    parse(&format!("{NTS}{line}")).unwrap().exchange().unwrap().advertised.clone()
}

fn entry(server: Option<&str>, port: Option<u16>, weight: u32) -> Advertised {
    Advertised { server: server.map(str::to_owned), port, weight, member: None }
}

#[test]
fn clients_are_sent_to_this_host_or_to_one_server_or_to_some_by_weight() {
    let here = [entry(None, None, 1)];
    assert_eq!((&advertised("")[..], &advertised("advertise = {}")[..]), (&here[..], &here[..]));
    assert_eq!(advertised("advertise = { port = 4123 }"), [entry(None, Some(4123), 1)]);
    let one = [entry(Some("time.example.net"), Some(4123), 1)];
    assert_eq!(advertised("advertise = { server = \"time.example.net\", port = 4123 }"), one);
    assert_eq!(advertised("[nts.advertise]\nserver = \"time.example.net\"\nport = 4123"), one);
    let list = "{ server = \"ntp-1\", port = 123, weight = 2 }, { server = \"ntp-2\" }, { weight = 0 }";
    let some = [entry(Some("ntp-1"), Some(123), 2), entry(Some("ntp-2"), None, 1), entry(None, None, 0)];
    assert_eq!(advertised(&format!("advertise = [{list}]")), some);
    let tables = "[[nts.advertise]]\nserver = \"ntp-1\"\nport = 123\nweight = 2\n[[nts.advertise]]\n\
                  server = \"ntp-2\"\n[[nts.advertise]]\nweight = 0";
    assert_eq!(advertised(tables), some);
}

#[test]
fn mistakes_in_the_list_are_named() {
    let many: Vec<String> = (0..=64).map(|index| format!("{{ server = \"ntp-{index}\" }}")).collect();
    let many = many.join(", ");
    for (value, parts) in [
        ("[]", &["test.toml", "nts.advertise = \"[]\"", "no server", "leave it out"][..]),
        (&format!("[{many}]"), &["nts.advertise = \"65\"", "too many servers", "at most 64"]),
        (
            "[{ server = \"a\", weight = 2 }, { server = \"b\" }, { server = \"a\" }]",
            &["nts.advertise = \"a\"", "listed twice", "a weight"],
        ),
        ("[{ server = \"a\" }, { server = \"a\", port = 123 }]", &["nts.advertise = \"a\"", "listed twice"]),
        ("[{}, {}]", &["nts.advertise = \"this host\"", "listed twice"]),
        ("[{ weight = 1001 }]", &["nts.advertise.weight = \"1001\"", "0 to 1000"]),
        ("{ weight = -1 }", &["nts.advertise.weight = \"-1\"", "0 to 1000"]),
        ("{ weight = 0 }", &["nts.advertise.weight = \"0\"", "no server takes new clients", "1 or more"]),
        ("[{ port = 65536 }]", &["nts.advertise.port = \"65536\"", "1 to 65535"]),
        ("[{ server = \"[::1]\" }]", &["nts.advertise.server = \"[::1]\"", "without brackets"]),
        ("{ host = \"a\" }", &["line 4", "nts.advertise.host: unknown key"]),
        ("[{ host = \"a\" }]", &["line 4", "nts.advertise.host: unknown key"]),
        ("\"ntp-1\"", &["line 4", "a table or a list of tables"]),
        ("[\"ntp-1\"]", &["line 4", "expected a table"]),
    ] {
        assert_names(&format!("{NTS}advertise = {value}"), parts);
    }
    let text =
        format!("[server]\nlisten = []\n{NTS}advertise = [{{ server = \"ntp-1\" }}, {{ port = 123 }}]");
    assert_names(&text, &["nts.advertise.server: missing", "no time is served here"]);
}

#[test]
fn members_of_the_list_are_those_of_the_fleet() {
    let of_fleet = |list: &str| fleet("").replace("[fleet]", &format!("advertise = [{list}]\n[fleet]"));
    let text = of_fleet("{ server = \"a\", member = \"ntp-1\" }, { server = \"b\", member = \"ke-1\" }, {}");
    let advertised = parse(&text).unwrap().exchange().unwrap().advertised.clone();
    let members: Vec<_> = advertised.iter().map(|entry| entry.member.as_ref().map(Name::as_str)).collect();
    assert_eq!(members, [Some("ntp-1"), Some("ke-1"), None]);
    let other = of_fleet("{ member = \"ntp-3\" }");
    assert_names(&other, &["nts.advertise.member = \"ntp-3\"", "not among fleet.members", "the name that"]);
    assert_names(&of_fleet("{ member = \"ntp 1\" }"), &["nts.advertise.member = \"ntp 1\"", "no name"]);
    let alone = format!("{NTS}advertise = {{ member = \"ntp-1\" }}");
    assert_names(&alone, &["nts.advertise.member = \"ntp-1\"", "there is no fleet", "add a table [fleet]"]);
}
