//! The process that looks names up for a server.
//!
//! It waits for questions and reads nothing of them: that there is one says which name is meant. For each it starts a
//! child, one at a time for a name, which gives up what a look-up does not take
//! ([`containment::contain_lookup`]), answers, and ends. So files of the resolver that were replaced since the start
//! are found, and what a hostile response may do to the C library ends with the child.

use std::os::fd::{AsFd, BorrowedFd};

use authentick_net::fork::{self, end_after, end_with};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getppid};
use rustix::thread::set_name;

use super::{AnsweredName, LIMIT};
use crate::config::Config;
use crate::containment;
use crate::identity::server_user;

/// How often it is looked whether a child has ended.
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Starts the process.
pub(super) fn start(config: &Config, names: &[AnsweredName]) -> std::io::Result<()> {
    let lines: Vec<BorrowedFd<'_>> = names.iter().map(|name| name.line.as_fd()).collect();
    fork::fork(&lines, || {
        if give_up_rights(config).is_some() {
            serve(config, names);
        }
    })
    .map(drop)
}

/// Gives up what the server will give up, too; `None` if that fails.
fn give_up_rights(config: &Config) -> Option<()> {
    let server = getppid()?;
    // What `ps` shows, and what is not killed by the program's name.
    let _ = set_name(c"names");
    if config.contain {
        containment::drop_bounding_capabilities();
    }
    // The server says what is wrong with its user.
    if let Some(user) = server_user(config).ok()? {
        user.become_user().ok()?;
    }
    if config.contain {
        containment::give_up_quietly();
    }
    end_with(server).ok()
}

/// Works until the server has closed all its ends.
fn serve(config: &Config, names: &[AnsweredName]) {
    let mut open: Vec<(&AnsweredName, Option<Pid>)> = names.iter().map(|name| (name, None)).collect();
    while !open.is_empty() {
        let mut polled: Vec<PollFd<'_>> =
            open.iter().map(|(name, _)| PollFd::new(&name.line, PollFlags::IN)).collect();
        let has_children = open.iter().any(|(_, child)| child.is_some());
        match poll(&mut polled, has_children.then_some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let is_ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut is_ready = is_ready.into_iter();
        open.retain_mut(|(name, child)| {
            *child = child.filter(|child| fork::is_running(*child));
            if !is_ready.next().unwrap_or(false) {
                return true;
            }
            if !name.is_asked() {
                return false;
            }
            // One that is under way will answer.
            if child.is_none() {
                *child = fork::fork(&[name.line.as_fd()], || look_up(config, name)).ok();
            }
            true
        });
    }
}

fn look_up(config: &Config, name: &AnsweredName) {
    end_after(LIMIT.as_secs() as u32);
    containment::contain_lookup(config);
    // Without its end the server asks again.
    let _ = name.answer();
}
