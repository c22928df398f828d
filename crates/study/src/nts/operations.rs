//! Operations alone: what parts of a key exchange and of a transfer take on one thread, without a network; reading a
//! small file; and a get from memcached.
//!
//! - here: turns, blocks and their figures; the file.
//! - `sealing`: cookies and tags, as the server's batches compute them.
//! - `handshake`: both halves of a TLS handshake, in memory.
//! - `memcached`: the get.
//!
//! Operations take their turns in rounds. What is short is repeated in blocks, so that the clock costs little; what the
//! clock shows of an empty block is taken off each.

mod handshake;
mod memcached;
mod sealing;

use std::fs::File;
use std::hint::black_box;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authentick_crypto::path;
use authentick_net::report_file;
use authentick_proto::limits::GROUP_SIZE;
use authentick_report::stats::{Percentile, Sample};
use authentick_report::study::Task;
use authentick_report::study::nts::{
    Operation, OperationTimes, Operations, OperationsRecord, Plan, Settings as NtsSettings,
};
use authentick_report::units::time;
use authentick_rig::processors::{Processor, pinned};

use super::bench::Bench;
use crate::Error;
use crate::folder::Folder;
use crate::paper::Found;

/// Operations are repeated until a block lasts so long.
const BLOCK_MIN: Duration = Duration::from_micros(5);
/// The longest block.
const BLOCK_COUNT_MAX: u32 = 4096;
/// Empty blocks of which the clock's cost is the median.
const EMPTY_COUNT: usize = 10_001;
/// Octets of the file that the study's server read for each request: tests/experiment.yaml of its commit.
const FILE_SIZE: usize = 192;
/// How many operations one subject measures at most.
const WIDTH: usize = 3;

/// What a block of each operation of a subject took.
type Block = [Duration; WIDTH];

/// Operations that are measured together: mostly one.
struct Subject<'a> {
    operations: Vec<Operation>,
    /// Of how many the work is that is done at once.
    per: usize,
    /// How often it is repeated in a block; `None`: as often as the clock asks for.
    block: Option<u32>,
    /// Does a block. The error says why it cannot be done, in half a sentence.
    work: Box<dyn FnMut(u32) -> Result<Block, String> + 'a>,
}

impl<'a> Subject<'a> {
    /// One operation, which is `per` of its kind at once.
    fn of(operation: Operation, per: usize, mut work: impl FnMut() + 'a) -> Self {
        let block = move |count: u32| {
            let start = Instant::now();
            (0..count).for_each(|_| work());
            Ok([start.elapsed(), Duration::ZERO, Duration::ZERO])
        };
        Subject { operations: vec![operation], per, block: None, work: Box::new(block) }
    }

    /// One operation that is timed by itself, and may fail.
    fn single(operation: Operation, mut work: impl FnMut() -> Result<(), String> + 'a) -> Self {
        let block = move |_| {
            let start = Instant::now();
            work()?;
            Ok([start.elapsed(), Duration::ZERO, Duration::ZERO])
        };
        Subject { operations: vec![operation], per: 1, block: Some(1), work: Box::new(block) }
    }

    /// How often it is repeated in a block.
    fn calibrated(&mut self) -> Result<u32, String> {
        // The first time is slower than all others.
        (self.work)(1)?;
        if let Some(block) = self.block {
            return Ok(block);
        }
        let mut block = 1;
        while block < BLOCK_COUNT_MAX && (self.work)(block)?[0] < BLOCK_MIN {
            block *= 2;
        }
        Ok(block)
    }
}

/// What was measured of one operation: hundredths of nanoseconds, by round.
struct Series {
    operation: Operation,
    block: u32,
    rounds: Vec<Sample<u64>>,
}

impl Series {
    fn times(&self) -> Option<OperationTimes> {
        let hundredths = |value: u64| value as f64 / 100.0;
        let all: Sample<u64> = self.rounds.iter().flat_map(|round| round.values().iter().copied()).collect();
        let at = |thousandths| all.percentile(Percentile::from_thousandths(thousandths)?).map(hundredths);
        Some(OperationTimes {
            operation: self.operation,
            block: self.block,
            count: all.values().len() as u64,
            p5_ns: at(5_000)?,
            p50_ns: at(50_000)?,
            mean_ns: all.mean()?.round() / 100.0,
            p95_ns: at(95_000)?,
            rounds_ns: self.rounds.iter().filter_map(|round| round.median().map(hundredths)).collect(),
        })
    }
}

/// What all subjects took; `None` if somebody says stop.
struct Measured {
    clock_ns: f64,
    operations: Vec<OperationTimes>,
}

/// What the clock shows of an empty block, in nanoseconds.
fn clock_ns() -> f64 {
    let empty = (0..EMPTY_COUNT).map(|_| Instant::now().elapsed().as_nanos() as u64);
    empty.collect::<Sample<u64>>().median().unwrap_or(0) as f64
}

/// Has all subjects take their turns, in so many rounds; `None` if somebody says stop.
fn measure(
    mut subjects: Vec<Subject<'_>>,
    settings: &NtsSettings,
    stop: &AtomicBool,
) -> Result<Option<Measured>, String> {
    let turn = Duration::from_secs_f64(settings.operation_seconds);
    let clock_ns = clock_ns();
    let mut series = Vec::new();
    for subject in &mut subjects {
        let block = subject.calibrated()?;
        let of = |&operation| Series { operation, block, rounds: Vec::new() };
        series.push(subject.operations.iter().map(of).collect::<Vec<_>>());
    }
    for _ in 0..settings.operation_rounds.max(1) {
        for (subject, series) in subjects.iter_mut().zip(&mut series) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let found = turns(subject, series[0].block, turn, clock_ns)?;
            series.iter_mut().zip(found).for_each(|(series, found)| series.rounds.push(found));
        }
    }
    let operations = series.iter().flatten().filter_map(Series::times).collect();
    Ok(Some(Measured { clock_ns, operations }))
}

/// The turn of one subject: at least one block.
fn turns(
    subject: &mut Subject<'_>,
    block: u32,
    turn: Duration,
    clock_ns: f64,
) -> Result<[Sample<u64>; WIDTH], String> {
    let mut values: [Vec<u64>; WIDTH] = Default::default();
    let of = f64::from(block) * subject.per as f64;
    let start = Instant::now();
    loop {
        let found = (subject.work)(block)?;
        for (values, found) in values.iter_mut().zip(found) {
            let each = (found.as_nanos() as f64 - clock_ns).max(0.0) / of;
            values.push((each * 100.0).round() as u64);
        }
        if start.elapsed() >= turn {
            return Ok(values.map(|values| values.into_iter().collect()));
        }
    }
}

/// A file of this size that is opened, read and closed.
fn read_file(file: &Path) -> Result<Subject<'_>, Error> {
    report_file::write(file, "# a setting\n".repeat(FILE_SIZE / 12).as_bytes())?;
    let mut text = Vec::with_capacity(FILE_SIZE);
    Ok(Subject::single(Operation::ReadFile, move || {
        text.clear();
        let read = File::open(file).and_then(|mut file| file.read_to_end(&mut text));
        black_box(&text);
        match read {
            Ok(FILE_SIZE) => Ok(()),
            Ok(size) => Err(format!("{}: {size} octets were read", file.display())),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }))
}

/// What of a record is known of operations.
struct Brought {
    measured: Measured,
    memcached: Option<String>,
    size: u64,
}

impl Brought {
    fn record(self, plan: &Plan, task: &Task) -> OperationsRecord {
        let Brought { measured: Measured { clock_ns, operations }, memcached, size } = self;
        OperationsRecord {
            version: plan.version.clone(),
            commit: plan.commit.clone(),
            command: plan.command.clone(),
            started_unix_s: plan.started_unix_s,
            host: plan.machine.clone(),
            task: task.id.clone(),
            path: path().to_string(),
            group: GROUP_SIZE as u32,
            memcached,
            size: Some(size),
            clock_ns,
            operations,
        }
    }
}

/// Operations alone.
pub(super) fn operations(
    of: Operations,
    task: &Task,
    bench: &Bench<'_>,
    folder: &Folder<NtsSettings>,
) -> Result<Found, Error> {
    let settings = &folder.plan.settings;
    let found = match of {
        Operations::Computed => computed(bench, settings)?,
        Operations::Memcached => memcached::measured(bench, settings)?,
    };
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Found::Stopped(None)),
        Err(why) => return Ok(Found::Infeasible(why)),
    };
    let record = found.record(&folder.plan, task);
    let line = match (of, record.operations.as_slice()) {
        (Operations::Memcached, [get, ..]) => format!("a get from memcached: {}", ns(get.p50_ns)),
        (_, operations) => {
            let of =
                |of| operations.iter().find(|times| times.operation == of).map_or(0.0, |times| times.p50_ns);
            let [shake, read] = [Operation::Handshake, Operation::ReadFile].map(|one| ns(of(one)));
            format!("{} operations alone: a TLS handshake {shake}, a file {read}", operations.len())
        }
    };
    Ok(Found::Measured { record: record.to_json(), line })
}

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

/// What of a task is known, or why there is nothing; `None` if it was stopped.
type Came = Result<Option<Brought>, String>;

fn computed(bench: &Bench<'_>, settings: &NtsSettings) -> Result<Came, Error> {
    let file = bench.folder.path().join("settings.yaml");
    let identity = handshake::Ends::new(&bench.identities)?;
    let stop = bench.caller.stop;
    let measured = pinned(Processor::First, || {
        let sealing = sealing::Sealing::new()?;
        let mut subjects = vec![identity.subject()];
        subjects.extend(sealing.subjects());
        subjects.push(read_file(&file)?);
        Ok::<_, Error>(measure(subjects, settings, stop))
    })?;
    let found = |measured| Brought { measured, memcached: None, size: FILE_SIZE as u64 };
    Ok(measured.map(|measured| measured.map(found)))
}

#[cfg(test)]
mod tests;
