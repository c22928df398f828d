//! Turns and their figures. Times say nothing here, as other tests share the machine.

use super::*;
use crate::identities::Identities;
use crate::paper::Paper as _;

fn settings() -> NtsSettings {
    let settings = crate::nts::Nts { quick: true, ..crate::nts::Nts::default() }.plan().settings;
    NtsSettings { operation_rounds: 3, operation_seconds: 0.002, ..settings }
}

#[test]
fn every_operation_is_measured_in_each_round() {
    let folder = tempfile::tempdir().unwrap();
    let identities = Identities::new(folder.path()).unwrap();
    let ends = handshake::Ends::new(&identities).unwrap();
    let sealing = sealing::Sealing::new().unwrap();
    let file = folder.path().join("settings.yaml");
    let mut subjects = vec![ends.subject(), read_file(&file).unwrap()];
    subjects.extend(sealing.subjects());
    let stop = AtomicBool::new(false);
    let measured = measure(subjects, &settings(), &stop).unwrap().unwrap();
    assert_eq!(measured.operations.len(), Operation::ALL.len() - 1);
    for times in &measured.operations {
        assert_eq!(times.rounds_ns.len(), 3, "{}", times.operation);
        assert!(times.p50_ns > 0.0 && times.p5_ns <= times.p50_ns, "{times:?}");
    }
    let block = |of| measured.operations.iter().find(|times| times.operation == of).unwrap().block;
    assert_eq!((block(Operation::Handshake), block(Operation::ReadFile)), (1, 1));
    assert!(block(Operation::OpenCookie) > 1);
    // Stopped, it brings nothing.
    stop.store(true, Ordering::Relaxed);
    assert!(measure(vec![ends.subject()], &settings(), &stop).unwrap().is_none());
}

#[test]
fn file_that_is_cut_is_no_read_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    let mut subject = read_file(&file).unwrap();
    assert!((subject.work)(1).is_ok());
    std::fs::write(&file, "short").unwrap();
    assert!((subject.work)(1).unwrap_err().ends_with("5 octets were read"));
}

#[test]
fn times_are_of_one_of_all_that_are_done_at_once_less_the_clock() {
    let took =
        |block: u32| Ok([Duration::from_micros(1_000) * block, Duration::ZERO, Duration::from_micros(3)]);
    let operations = vec![Operation::OpenCookieInGroup];
    let mut subject = Subject { operations, per: 16, block: None, work: Box::new(took) };
    let [found, nothing, other] = turns(&mut subject, 2, Duration::ZERO, 3_200.0).unwrap();
    // Two of them last a millisecond each, of 16 operations; hundredths of nanoseconds.
    assert_eq!(found.values(), [(2_000_000 - 3_200) * 100 / 32]);
    assert_eq!((nothing.values(), other.values()), (&[0][..], &[0][..]), "no time is below zero");
    let series = Series { operation: Operation::OpenCookieInGroup, block: 2, rounds: vec![found] };
    let times = series.times().unwrap();
    assert_eq!((times.count, times.p50_ns, &times.rounds_ns[..]), (1, 62_400.0, &[62_400.0][..]));
    assert_eq!(Series { rounds: Vec::new(), ..series }.times(), None);
}
