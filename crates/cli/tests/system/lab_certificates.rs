//! Certificates of `certificates lab`, and of openssl(1) as operators use it: what clients and `serve --check` make of
//! them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_lab::certificates::write_private;
use authentick_lab::peers::Chrony;
use authentick_lab::process::Process;
use authentick_lab::skip::skip;

use crate::lab::{Lab, Server, authentick, refused, start, text};

/// Runs `certificates lab` in a folder; what it printed.
#[track_caller]
fn make(folder: &Path, names: &[&str]) -> String {
    let out = folder.to_str().unwrap();
    let output =
        authentick(["certificates", "lab"].into_iter().chain(names.iter().copied()).chain(["--out", out]));
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A configuration with this text as its `[nts]`.
fn config(lab: &Lab, nts: &str) -> PathBuf {
    let file = lab.path().join("lab.toml");
    let state = lab.path().join("lab-state");
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nuser = \"root\"\nworkers = 1\nstate-directory = {state:?}\n\
         reference = {{ stratum = 1, id = \"TEST\" }}\n{nts}\nke-listen = [\"127.0.0.1:0\"]\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n"
    );
    fs::write(&file, text).unwrap();
    file
}

/// The lines for a configuration in what the command printed.
fn nts_of(printed: &str) -> &str {
    let rest = printed.split_once("configuration:\n").unwrap().1;
    rest.split_once("\n\n").unwrap().0
}

fn check(config: &Path) -> (Option<i32>, String) {
    let output = authentick(["serve", "--check", "--config", config.to_str().unwrap()]);
    (output.status.code(), text(&output))
}

fn query(server: &Server, host: &str, ca: &Path) -> std::process::Output {
    let (host, ke) = (format!("{host}:{}", server.ntp.port()), server.ke.port().to_string());
    authentick(["query", &host, "--ke-port", &ke, "--ca", ca.to_str().unwrap()])
}

#[test]
fn certificate_of_the_lab_command_authenticates_time() {
    let lab = Lab::new();
    let folder = lab.path().join("made/here");
    let printed = make(&folder, &["localhost", "127.0.0.1", "::1"]);
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode("ca.pem"), mode("ca-key.pem"), mode("localhost.pem")], [0o644, 0o600, 0o644]);
    assert!([0o600, 0o640].contains(&mode("localhost-key.pem")));
    let ca = folder.join("ca.pem");
    assert!(printed.lines().last().unwrap().contains(&format!("--ca {}", ca.display())), "{printed}");

    let config = config(&lab, nts_of(&printed));
    let (code, said) = check(&config);
    assert!(code == Some(0) && said.contains("good") && !said.contains("certificate of"), "{said}");
    let server = start(&config);
    for host in ["localhost", "127.0.0.1"] {
        let answer = query(&server, host, &ca);
        assert!(answer.status.success() && text(&answer).contains("NTS, "), "{}", text(&answer));
    }
    // The lab's own authority has nothing to do with it.
    assert_eq!(query(&server, "localhost", &lab.ca()).status.code(), Some(2));
}

#[test]
fn chrony_accepts_a_certificate_of_the_lab_command() {
    let Some(chrony) = Chrony::find() else { return };
    let lab = Lab::new();
    let folder = lab.path().join("made");
    let server = start(&config(&lab, nts_of(&make(&folder, &["127.0.0.1"]))));
    let lines = format!(
        "server 127.0.0.1 port {} minpoll 0 iburst nts ntsport {}\nntstrustedcerts {}",
        server.ntp.port(),
        server.ke.port(),
        folder.join("ca.pem").display()
    );
    let output = chrony.ask_once(&lab, &lines);
    assert!(text(&output).contains("System clock wrong by"), "{}", text(&output));
    assert!(server.outcome("nts") >= 1.0);
}

#[test]
fn authority_of_the_lab_command_is_reused() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let first = make(folder.path(), &["a.lab"]);
    let authority = [read("ca.pem"), read("ca-key.pem")];
    assert!(first.starts_with("written "), "{first}");
    let old = read("a.lab-key.pem");
    for names in [&["b.lab", "*.b.lab", "2001:db8::1"][..], &["a.lab"], &["2001:db8::2"]] {
        let printed = make(folder.path(), names);
        assert!(printed.starts_with("reused "), "{printed}");
    }
    assert!(authority == [read("ca.pem"), read("ca-key.pem")], "the authority was written again");
    assert!(old != read("a.lab-key.pem"), "the certificate was not renewed");
    assert!(folder.path().join("2001-db8--2.pem").is_file());
}

#[test]
fn lab_command_refuses_what_it_cannot_make() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let run = |arguments: &[&str]| {
        authentick(["certificates", "lab"].into_iter().chain(arguments.iter().copied()).chain(["--out", out]))
    };
    for name in ["a b", "[::1]", "127.0.0.1:4460", "m\u{fc}nchen.example", "fe80::1%eth0", "../a", ""] {
        refused(&run(&[name]), 64, &["invalid name", "expected a DNS name"]);
    }
    refused(&run(&["a.lab", "--days", "0"]), 64, &["--days"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
    make(folder.path(), &["a.lab"]);
    refused(&run(&["a.lab", "--days", "4000"]), 64, &["--days"]);
    fs::remove_file(folder.path().join("ca-key.pem")).unwrap();
    refused(&run(&["a.lab"]), 78, &["ca.pem", "ca-key.pem is missing", "--out"]);
    fs::copy(folder.path().join("a.lab-key.pem"), folder.path().join("ca-key.pem")).unwrap();
    refused(&run(&["a.lab"]), 78, &["does not belong to ca.pem", "--out"]);
}

/// What openssl(1) makes of a script, in a folder with a root and an inner authority; `None` where it is missing.
struct OpenSsl(tempfile::TempDir);

impl OpenSsl {
    fn new() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            skip("there is no openssl(1)");
            return None;
        }
        let openssl = OpenSsl(tempfile::tempdir().unwrap());
        openssl.run(
            "cat > c <<X\n[req]\ndistinguished_name=d\n[d]\n[ca]\nbasicConstraints=critical,CA:TRUE\n\
             [leaf]\nbasicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n\
             [client]\nsubjectAltName=DNS:localhost\nextendedKeyUsage=clientAuth\n[none]\n\
             basicConstraints=CA:FALSE\nX\n\
             key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $1.key; }\n\
             sign() { openssl req -new -key $1.key -subj /CN=$1 -out r -config c; openssl x509 -req -in r -CA $2.pem \
             -CAkey $2.key -CAcreateserial -days 90 -out $1.pem ${3:+-extfile c -extensions $3}; }\n\
             key root; openssl req -x509 -new -key root.key -subj /CN=root -days 90 -out root.pem -config c \
             -extensions ca\n\
             key inner; sign inner root ca; key leaf; sign leaf inner leaf\n\
             declare -f key sign > f",
        );
        Some(openssl)
    }

    /// Runs a script for bash, which knows the functions `key` and `sign`.
    fn run(&self, script: &str) {
        let script = format!("[ ! -e f ] || . ./f\n{script}");
        let output =
            Command::new("bash").args(["-euc", &script]).current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output));
    }

    fn nts(&self, chain: &str, key: &str) -> String {
        let [chain, key] = [chain, key].map(|name| self.0.path().join(name));
        format!("[nts]\ncertificate-chain = {chain:?}\nprivate-key = {key:?}")
    }
}

/// What makes c.pem and its key k, how the check ends, what it says, and the remedy.
const CASES: [(&str, i32, &str, &str); 20] = [
    ("cat leaf.pem inner.pem > c.pem; cp leaf.key k", 0, "", ""),
    ("printf %s \"$(cat leaf.pem)\" > c.pem; cat inner.pem >> c.pem; cp leaf.key k", 0, "", ""),
    (
        "openssl x509 -in leaf.pem -text > c.pem; openssl x509 -in inner.pem -text >> c.pem; cp leaf.key k",
        0,
        "",
        "",
    ),
    ("cp leaf.pem c.pem; cp leaf.key k", 0, "lacks the certificate of CN=inner", "fullchain.pem"),
    (
        "cat leaf.pem root.pem inner.pem > c.pem; cp leaf.key k",
        0,
        "did not issue the one before",
        "own certificate first",
    ),
    (
        "cat root.pem inner.pem leaf.pem > c.pem; cp leaf.key k",
        78,
        "begins with the certificate of CN=root",
        "own certificate first",
    ),
    (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out c.pem -days 9 \
             -subj /CN=localhost -addext subjectAltName=DNS:localhost",
        0,
        "CA:TRUE",
        "CA:FALSE",
    ),
    (
        "key x; sign x inner none; cat x.pem inner.pem > c.pem; cp x.key k",
        0,
        "no subjectAltName",
        "subjectAltName=DNS:NAME",
    ),
    (
        "key x; sign x inner client; cat x.pem inner.pem > c.pem; cp x.key k",
        0,
        "serverAuth",
        "extendedKeyUsage=serverAuth",
    ),
    ("key x; sign x inner; cat x.pem inner.pem > c.pem; cp x.key k", 78, "X.509 version 1", "made again"),
    (
        "openssl genrsa -out x.key 1024; sign x inner leaf; cat x.pem inner.pem > c.pem; cp x.key k",
        78,
        "1024 bits",
        "2048",
    ),
    (
        "openssl ecparam -name prime256v1 -param_enc explicit -genkey -noout -out x.key; sign x inner leaf; \
             cat x.pem inner.pem > c.pem; cp x.key k",
        78,
        "explicit curve parameters",
        "named",
    ),
    (
        "openssl x509 -in leaf.pem -trustout -addtrust serverAuth > c.pem; cp leaf.key k",
        78,
        "TRUSTED CERTIFICATE",
        "openssl x509 -in",
    ),
    (
        "sed s/CERTIFICATE/'X509 CERTIFICATE'/ leaf.pem > c.pem; cp leaf.key k",
        78,
        "X509 CERTIFICATE",
        "openssl x509 -in",
    ),
    ("openssl x509 -in leaf.pem -outform DER -out c.pem; cp leaf.key k", 78, "DER", "openssl x509 -in"),
    (
        "openssl crl2pkcs7 -nocrl -certfile leaf.pem > c.pem; cp leaf.key k",
        78,
        "PKCS7",
        "openssl pkcs7 -print_certs",
    ),
    (
        "cat leaf.pem > c.pem; head -c 300 inner.pem >> c.pem; cp leaf.key k",
        78,
        "-----BEGIN CERTIFICATE----- has no end",
        "as a whole",
    ),
    ("cat leaf.pem inner.pem > c.pem; cp inner.key k", 78, "its certificate 2", "own certificate first"),
    ("cat leaf.pem inner.pem > c.pem; cp root.key k", 78, "does not belong", "made for"),
    (
        "cat leaf.pem inner.pem > c.pem; openssl pkcs8 -topk8 -in leaf.key -passout pass:x -out k",
        78,
        "encrypted",
        "openssl pkey -in",
    ),
];

#[test]
fn check_judges_certificates_as_clients_do() {
    let Some(openssl) = OpenSsl::new() else { return };
    let lab = Lab::new();
    for (script, code, problem, remedy) in CASES {
        openssl.run(&format!("rm -f c.pem k x.key; {script}; chmod 600 k"));
        let config = config(&lab, &openssl.nts("c.pem", "k"));
        let (found, said) = check(&config);
        assert_eq!(found, Some(code), "{script}: {said}");
        assert!(said.contains(problem) && said.contains(remedy), "{script}: {said}");
        assert!(!problem.is_empty() || !said.contains("c.pem"), "{script}: {said}");
        // The start judges alike.
        let mut start = Command::new(crate::lab::program().path());
        start.args(["serve", "--config"]).arg(&config);
        match code {
            0 => {
                let mut server = Process::start(&mut start);
                server.wait_for_line("serving time on ");
                assert!(server.log().contains(problem), "{script}: {}", server.log());
            }
            _ => {
                let output = start.output().unwrap();
                assert!(
                    output.status.code() == Some(code) && text(&output).contains(problem),
                    "{script}: {}",
                    text(&output)
                );
            }
        }
    }
}

/// Editors of other systems put a byte order mark before a text.
#[test]
fn every_file_of_a_server_may_have_a_byte_order_mark() {
    let lab = Lab::new();
    let folder = lab.path().join("made");
    let keys = lab.path().join("symmetric-keys");
    let printed = make(&folder, &["localhost"]);
    let config = config(&lab, nts_of(&printed));
    let (fragments, state) = (lab.path().join("conf.d"), lab.path().join("lab-state"));
    fs::create_dir(&fragments).unwrap();
    fs::write(fragments.join("more.toml"), format!("[symmetric]\nkeys = {keys:?}\n")).unwrap();
    write_private(&keys, "7 SHA1 HEX:000102030405060708090A0B0C0D0E0F10111213\n");
    let path = config.to_str().unwrap();
    assert!(authentick(["keys", "generate", "--config", path]).status.success());
    let files = [
        config.clone(),
        fragments.join("more.toml"),
        keys.clone(),
        folder.join("ca.pem"),
        folder.join("localhost.pem"),
        folder.join("localhost-key.pem"),
        state.join("cookie-keys"),
    ];
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        fs::write(file, format!("\u{feff}{text}")).unwrap();
    }
    let (code, said) = check(&config);
    assert!(code == Some(0) && said.contains("good"), "{said}");
    let server = start(&config);
    let answer = query(&server, "localhost", &folder.join("ca.pem"));
    assert!(answer.status.success(), "{}", text(&answer));
    let rotated = authentick(["keys", "rotate", "--config", path]);
    assert!(rotated.status.success(), "{}", text(&rotated));
    assert!(make(&folder, &["localhost"]).starts_with("reused "));
}

#[test]
fn renewal_with_glued_blocks_serves_the_whole_chain() {
    let Some(openssl) = OpenSsl::new() else { return };
    let lab = Lab::new();
    openssl.run("cat leaf.pem inner.pem > c.pem; cp leaf.key k; chmod 600 k");
    let mut server = start(&config(&lab, &openssl.nts("c.pem", "k")));
    openssl.run("key leaf; sign leaf inner leaf; cat leaf.key > k");
    openssl.run("printf %s \"$(cat leaf.pem)\" > c.pem; cat inner.pem >> c.pem");
    server.process.signal("-HUP");
    server.process.wait_for_line("certificate read again");
    // Authorities may be glued too.
    openssl.run("printf '\\357\\273\\277M\\374nchen\\r\\n%s' \"$(cat inner.pem)\" > both.pem");
    openssl.run("cat root.pem >> both.pem");
    for ca in ["root.pem", "both.pem"] {
        let answer = query(&server, "localhost", &openssl.0.path().join(ca));
        assert!(answer.status.success(), "{ca}: {}", text(&answer));
    }
    // A chain that lost a block is refused, and the old one serves.
    openssl.run("sed 's/-----BEGIN/x-----BEGIN/' inner.pem > lost; cat leaf.pem lost > c.pem");
    server.process.signal("-HUP");
    let line = server.process.wait_for_line("certificate not changed");
    assert!(line.contains("-----BEGIN is within other text"), "{line}");
    assert!(query(&server, "localhost", &openssl.0.path().join("root.pem")).status.success());
}

/// The commands of the manual's page, as they stand there.
#[test]
fn manual_makes_a_certificate_with_openssl() {
    let Some(openssl) = OpenSsl::new() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/certificates.md");
    let page = fs::read_to_string(page).unwrap();
    let commands = page.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0;
    openssl.run(&commands.replace("time.lab", "localhost"));
    let lab = Lab::new();
    let config = config(&lab, &openssl.nts("localhost.pem", "localhost-key.pem"));
    let (code, said) = check(&config);
    assert!(code == Some(0) && !said.contains("localhost.pem"), "{said}");
    let answer = query(&start(&config), "localhost", &openssl.0.path().join("ca.pem"));
    assert!(answer.status.success() && text(&answer).contains("NTS, "), "{}", text(&answer));
}
