//! Lines of a server's log on their way to standard error.
//!
//! A reader that stands still (a pipe to a logger that hangs, a terminal that was stopped) makes `write` wait for as
//! long. So a thread of its own writes, and everything else leaves its lines in a queue without waiting. There is room
//! for `LINE_COUNT_MAX` lines, made at the start; those that find none are counted, and the log has the count once
//! it is read again. Standard error stays in the mode that it has: other processes may share it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{LazyLock, OnceLock};
use std::thread::{self, Builder, Thread};
use std::time::{Duration, Instant};

use authentick_net::process::leave_signals_to_others;
use crossbeam_queue::ArrayQueue;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};

use crate::containment::{self, Containment, ThreadKind};
use crate::metrics::counters::Counter;

/// The log of this process.
pub static LOG: LazyLock<LogQueue> = LazyLock::new(LogQueue::new);

/// Lines that wait, at most.
const LINE_COUNT_MAX: usize = 1024;
/// How often it is looked whether there is room for the last entry.
const RETRY: Duration = Duration::from_millis(5);

/// Lines that wait for their turn, and the thread that writes them.
#[derive(Debug)]
pub struct LogQueue {
    entries: ArrayQueue<Entry>,
    lost: Counter,
    writer: OnceLock<Thread>,
    containment: OnceLock<Containment>,
}

#[derive(Debug)]
enum Entry {
    /// A line with its end.
    Line(Vec<u8>),
    /// All before it is written.
    Mark(SyncSender<()>),
}

impl LogQueue {
    fn new() -> Self {
        LogQueue {
            entries: ArrayQueue::new(LINE_COUNT_MAX),
            lost: Counter::default(),
            writer: OnceLock::new(),
            containment: OnceLock::new(),
        }
    }

    /// Leaves a line with its end, without waiting. If there is no room, it is lost.
    pub fn push(&self, line: &[u8]) {
        match self.entries.push(Entry::Line(line.to_vec())) {
            Ok(()) => self.wake(),
            Err(_) => self.lost.count(),
        }
    }

    /// Lines that found no room, or that standard error did not take.
    pub(crate) fn lost_count(&self) -> u64 {
        self.lost.get()
    }

    /// Starts the thread that writes, unless there is one; `contain`: whether [`LogQueue::contain`] will follow.
    pub fn start(&'static self, contain: bool) {
        if self.writer.get().is_some() {
            return;
        }
        let run = move || {
            // Without an error there is nothing that could be done, and nobody to hear of it.
            let _ = leave_signals_to_others();
            if contain {
                containment::drop_bounding_capabilities();
            }
            self.write_to(io::stderr().as_fd());
        };
        if let Ok(started) = Builder::new().name("log".to_owned()).spawn(run) {
            let _ = self.writer.set(started.thread().clone());
        }
        self.wake();
    }

    /// Has the thread that writes give up its rights, as those of the process are gone: at once, or when a write that
    /// waits has ended.
    pub fn contain(&self, containment: Containment) {
        let _ = self.containment.set(containment);
        self.wake();
    }

    /// Waits until what was left before is written, for `limit` at most; false if it is not.
    pub fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let (done, is_done) = mpsc::sync_channel(1);
        let mut mark = Entry::Mark(done);
        while let Err(entry) = self.entries.push(mark) {
            if Instant::now() >= deadline {
                return false;
            }
            mark = entry;
            thread::sleep(RETRY);
        }
        self.wake();
        is_done.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok()
    }

    fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Writes what is left here, for as long as the process lives.
    fn write_to(&self, out: BorrowedFd<'_>) {
        let (mut is_contained, mut reported, mut is_taken) = (false, 0, false);
        loop {
            if let (Some(containment), false) = (self.containment.get(), is_contained) {
                is_contained = true;
                containment.enter_late(ThreadKind::Log);
            }
            match self.entries.pop() {
                Some(Entry::Line(line)) => {
                    is_taken = write_all(out, &line).is_ok();
                    if !is_taken {
                        self.lost.count();
                    }
                }
                Some(Entry::Mark(done)) => drop(done.try_send(())),
                None => {
                    let lost = self.lost.get();
                    // Where nothing is taken, a line about it would be the next one to be lost.
                    if lost > reported && is_taken {
                        log::warn!(
                            "log: {} lines lost, as standard error was not read or took nothing",
                            lost - reported
                        );
                        reported = lost;
                    } else {
                        thread::park();
                    }
                }
            }
        }
    }
}

/// Writes a line, and waits for as long as that takes.
fn write_all(out: BorrowedFd<'_>, mut rest: &[u8]) -> Result<(), Errno> {
    while !rest.is_empty() {
        match write(out, rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            // Another process has made it so.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::from_borrowed_fd(out, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn queue() -> &'static LogQueue {
        Box::leak(Box::new(LogQueue::new()))
    }

    /// Has a thread write into one end of a stream, whose other end is returned.
    fn start(queue: &'static LogQueue) -> UnixStream {
        let (reader, writer) = UnixStream::pair().unwrap();
        let thread = thread::spawn(move || queue.write_to(writer.as_fd()));
        queue.writer.set(thread.thread().clone()).unwrap();
        reader
    }

    #[test]
    fn lines_left_before_the_start_are_written_in_order() {
        let queue = queue();
        queue.push(b"one\n");
        queue.push(b"two\n");
        let mut reader = start(queue);
        queue.push(b"three\n");
        assert!(queue.flush(Duration::from_secs(20)));
        let mut octets = [0; 14];
        reader.read_exact(&mut octets).unwrap();
        assert_eq!(&octets, b"one\ntwo\nthree\n");
        assert_eq!(queue.lost_count(), 0);
    }

    #[test]
    fn reader_that_stands_still_delays_nobody_and_lines_are_counted() {
        let queue = queue();
        let mut reader = start(queue);
        let line = [b'x'; 4096];
        let began = Instant::now();
        for _ in 0..4 * LINE_COUNT_MAX {
            queue.push(&line);
        }
        assert!(!queue.flush(Duration::from_millis(50)));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        let lost = queue.lost_count();
        assert!(lost > LINE_COUNT_MAX as u64, "{lost}");
        let read = thread::spawn(move || {
            let mut octets = vec![0; (4 * LINE_COUNT_MAX - lost as usize) * line.len()];
            reader.read_exact(&mut octets).unwrap();
            reader
        });
        assert!(queue.flush(Duration::from_secs(20)), "it is read again");
        drop(read.join().unwrap());
    }

    #[test]
    fn reader_that_is_gone_costs_lines_alone() {
        let queue = queue();
        drop(start(queue));
        queue.push(b"one\n");
        assert!(queue.flush(Duration::from_secs(20)));
        assert_eq!(queue.lost_count(), 1);
    }
}
