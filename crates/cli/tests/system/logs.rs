//! The log of a server: who reads it, and what cannot flood it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use authentick_lab::process::{Process, free_port, wait_for};

use crate::lab::{Lab, authentick, program, start};

/// Starts a server with standard error in a file, so that it can be named before the server starts. `words` go before
/// the program's path in a shell that has its arguments.
fn start_with_log(lab: &Lab, words: &str, more: &[&str]) -> (Process, std::path::PathBuf) {
    let log = lab.path().join("log");
    (start_with_log_at(&log, &lab.config("", ""), words, more), log)
}

fn start_with_log_at(log: &Path, config: &Path, words: &str, more: &[&str]) -> Process {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec 2>\"$1\"; shift; {words} exec \"$@\"")).arg("sh").arg(log);
    command.arg(program().path()).arg("serve").arg("--config").arg(config).args(more);
    Process::start(&mut command)
}

/// A pipe with a name, filled to the brim.
struct StuckLog(File);

impl StuckLog {
    fn new(path: &Path) -> Self {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let options = &mut OpenOptions::new();
        StuckLog(options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap())
    }

    fn fill(&mut self) {
        for piece in [&[b'x'; 4096][..], b"x"] {
            while self.0.write(piece).map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock)).is_ok()
            {
            }
        }
    }

    fn read(&mut self) -> String {
        let mut octets = vec![0; 1 << 20];
        let count = self.0.read(&mut octets).unwrap_or(0);
        String::from_utf8_lossy(&octets[..count]).into_owned()
    }
}

/// Whether time is served there, and synchronised.
fn serves(address: SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut request = [0; 48];
    (request[0], request[47]) = (0x23, 1);
    socket.send_to(&request, address).unwrap();
    let mut response = [0; 48];
    socket.recv(&mut response).is_ok_and(|size| size == 48) && response[0] >> 6 != 3
}

fn lines(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn wait_for_line(log: &Path, part: &str) {
    wait_for(part, || lines(log).iter().any(|line| line.contains(part)).then_some(()));
}

#[test]
fn each_line_is_an_object_if_that_is_asked_for() {
    let lab = Lab::new();
    let (mut server, log) = start_with_log(&lab, "", &["--log-format", "json"]);
    wait_for_line(&log, "exchanging keys on ");
    std::fs::remove_file(lab.chain()).unwrap();
    server.signal("-HUP");
    wait_for_line(&log, "certificate not changed");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
    let lines: Vec<serde_json::Value> =
        lines(&log).iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    let with = |level: &str, words: &str| {
        lines.iter().any(|line| line["level"] == level && line["message"].as_str().unwrap().contains(words))
    };
    assert!(with("info", "serving time on 127.0.0.1:"), "{lines:?}");
    assert!(with("error", "certificate not changed: "), "{lines:?}");
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 24, "{time}");
    }
}

#[test]
fn failed_start_is_an_object_in_a_json_log() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("authentick.toml");
    std::fs::write(&config, "[server]\nlistne = []\n").unwrap();
    for check in [&[][..], &["--check"]] {
        let config = config.to_str().unwrap();
        let output = authentick([&["serve", "--log-format", "json", "--config", config], check].concat());
        assert_eq!(output.status.code(), Some(78));
        let error = String::from_utf8(output.stderr).unwrap();
        let line: serde_json::Value = serde_json::from_str(&error).expect(&error);
        assert_eq!(line["level"], "error");
        assert!(line["message"].as_str().unwrap().contains("server.listne: unknown key"), "{line}");
        assert!(line["time"].as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{line}");
    }
}

#[test]
fn journal_is_told_the_priority_of_each_line_and_a_file_is_not() {
    let lab = Lab::new();
    let named = "JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2); export JOURNAL_STREAM;";
    let (mut server, log) = start_with_log(&lab, named, &[]);
    wait_for_line(&log, "<6>exchanging keys on ");
    std::fs::remove_file(lab.chain()).unwrap();
    server.signal("-HUP");
    wait_for_line(&log, "<3>certificate not changed: ");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
    assert!(lines(&log).iter().all(|line| line.starts_with('<')), "{:?}", lines(&log));

    let lab = Lab::new();
    let (mut server, log) = start_with_log(&lab, "JOURNAL_STREAM=1:2; export JOURNAL_STREAM;", &[]);
    wait_for_line(&log, "exchanging keys on ");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
    assert!(lines(&log).iter().all(|line| line.starts_with("[20")), "{:?}", lines(&log));
}

#[test]
fn fault_that_comes_back_fills_no_log_and_what_was_left_out_is_told() {
    const COUNT: usize = 50;
    let lab = Lab::new();
    let (mut server, log) = start_with_log(&lab, "", &[]);
    wait_for_line(&log, "exchanging keys on ");
    std::fs::write(lab.path().join("authentick.toml"), "[server]\nlisten = 1\n").unwrap();
    let written = || lines(&log).iter().filter(|line| line.contains("configuration not changed: ")).count();
    for _ in 0..COUNT {
        server.signal("-HUP");
        // So that no two of them come as one.
        std::thread::sleep(Duration::from_millis(25));
    }
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
    assert_eq!(written(), 31, "thirty, and what was left out: {:?}", lines(&log));
    let is_notice =
        |line: &String| line.contains("configuration not changed: ") && line.contains("(20 lines like");
    assert!(lines(&log).iter().any(is_notice), "{:?}", lines(&log));
}

#[test]
fn log_that_is_not_read_delays_no_start_reload_or_stop() {
    let lab = Lab::new();
    let (address, log) = (SocketAddr::from(([127, 0, 0, 1], free_port())), lab.path().join("log"));
    let config = lab.config(&format!("listen = [\"{address}\"]"), "");
    let mut stuck = StuckLog::new(&log);
    stuck.fill();
    let mut server = start_with_log_at(&log, &config, "", &[]);
    wait_for("time while the log is stuck", || serves(address).then_some(()));
    std::fs::write(&config, "[server]\nlisten = 1\n").unwrap();
    for _ in 0..3 {
        server.signal("-HUP");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(serves(address));
    let began = Instant::now();
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn mistake_ends_a_start_whose_log_is_not_read() {
    let lab = Lab::new();
    let (log, config) = (lab.path().join("log"), lab.path().join("wrong.toml"));
    std::fs::write(&config, "[server]\nlisten = 1\n").unwrap();
    let mut stuck = StuckLog::new(&log);
    stuck.fill();
    assert_eq!(start_with_log_at(&log, &config, "", &[]).wait(), 78);
}

#[test]
fn lines_that_waited_for_a_reader_are_written_when_it_reads() {
    let lab = Lab::new();
    let (address, log) = (SocketAddr::from(([127, 0, 0, 1], free_port())), lab.path().join("log"));
    let mut stuck = StuckLog::new(&log);
    stuck.fill();
    let config = lab.config(&format!("listen = [\"{address}\"]"), "");
    let mut server = start_with_log_at(&log, &config, "", &[]);
    wait_for("time while the log is stuck", || serves(address).then_some(()));
    let mut written = String::new();
    wait_for("lines of the start", || {
        written.push_str(&stuck.read());
        written.contains("exchanging keys on ").then_some(())
    });
    assert!(written.contains("contained: "), "{written}");
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn strangers_cannot_fill_the_log() {
    let lab = Lab::new();
    let server = start(&lab.config("", ""));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(server.ntp).unwrap();
    let mut datagram = [0x23; 468];
    for number in 0..100_000_u32 {
        datagram[60..64].copy_from_slice(&number.to_be_bytes());
        // A full queue is the server's answer to a flood.
        let _ = stranger.send(&datagram[..44 + number as usize % 420]);
    }
    for number in 0..1_000_u32 {
        let mut connection = TcpStream::connect(server.ke).unwrap();
        let hello: &[u8] = match number % 3 {
            0 => b"\x16\x03\x01\x00\x05hello",
            1 => b"GET / HTTP/1.1\r\n\r\n",
            _ => b"",
        };
        let _ = connection.write_all(hello);
    }
    assert_eq!(server.query(&lab, &[]).status.code(), Some(0), "it serves");
    let log = server.process.log();
    assert!(log.lines().count() < 100, "{log}");
}
