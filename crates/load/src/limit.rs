//! What limited a step, by its figures: the server, the generator, the path, or nothing. Pure functions.
//!
//! [`judge`] asks rule after rule, in the order of `OPEN` or `CLOSED`; the first that applies decides. The
//! generator is asked first: figures that it spoilt say nothing about others. Losses are traced by what the server's
//! host counts of UDP: a request that nobody read was lost on the way, or in the server's socket, where it found no
//! room or still waits; one that was read and not answered, in the server; an answer that was sent and did not come, on
//! the way back. What these counters mean is told in `server_use::counters`.

use authentick_generator::validity::{
    Fate, OFFER_LESS, Subject, lateness_max_ns, shortages, want_of_cookies,
};
use authentick_report::load::{Cause, Evidence, Limit, Operation, ServerUse, Step, Tally, Traffic, Verdict};
use authentick_report::units::{count, microseconds, percent, plural};

/// A thread that runs, or is kept from running, for this share of the time is at its limit.
const SATURATED_MIN: f64 = 0.95;

/// A sending thread that is idle for less is at its limit.
const IDLE_MIN: f64 = 0.05;

/// A thread that is idle for this share of the time and late all the same was kept from running.
const IDLE_ENOUGH: f64 = 0.5;

/// Others that had a thread's processor for this share of the time matter.
const HELD_MIN: f64 = 0.05;

/// A smaller share of operations that fail limits nothing.
const LOSS_MIN: f64 = 0.001;

/// Datagrams that counters may be off by, as others use the same hosts: so many, or this share of all requests.
const STRANGER_COUNT: u64 = 10;
const STRANGER_SHARE: u64 = 1000;

/// A verdict, if the rule applies.
type Rule = fn(&Case<'_>) -> Option<Verdict>;

/// The rules for an open loop.
const OPEN: [Rule; 6] =
    [generator_failed, nothing_was_sent, server_was_held_up, backlog_grew, nothing_was_lost, losses];

/// The rules for a closed loop, which is never late.
const CLOSED: [Rule; 6] = [
    generator_failed,
    nothing_was_sent,
    server_was_busy,
    generator_was_busy,
    losses_of_note,
    nobody_was_busy,
];

/// What limited this step.
#[must_use]
pub fn judge(step: &Step) -> Verdict {
    let case = Case::of(step);
    let rules: &[Rule] = if case.is_closed { &CLOSED } else { &OPEN };
    let unknown = || verdict(Limit::Unknown, ["the figures do not show what limited it".to_owned()]);
    let found = rules.iter().find_map(|rule| rule(&case)).unwrap_or_else(unknown);
    match case.server().and_then(Server::kept_from_running) {
        Some(share) if found.by == Limit::Server => of_host(share, found),
        Some(_) | None => found,
    }
}

/// The server's host is the limit where other work had the server's processor: what it carries alone is not known.
fn of_host(share: f64, found: Verdict) -> Verdict {
    let why = format!(
        "the server waited for its processor {} of the time, as other work had it; free the processor, or pin the \
         server elsewhere",
        part(share)
    );
    Verdict { by: Limit::Host, why: std::iter::once(why).chain(found.why).collect() }
}

/// Whether counters place the losses of a step at the server or on the way, whenever its requests left.
pub(crate) fn places_losses(step: &Step) -> bool {
    let case = Case::of(step);
    let found = case.loses().then(|| losses(&case)).flatten();
    found.is_some_and(|verdict| matches!(verdict.by, Limit::Server | Limit::Path))
        && dropped(&case).is_empty()
}

/// Datagrams that clients sent and read during a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagrams {
    /// Requests.
    pub(crate) requests: u64,
    /// Answers, wrong and late ones included.
    pub(crate) answers: u64,
}

/// The datagrams of a step; `None` if they do not follow from its operations, as those of ANTP take several.
pub(crate) fn datagrams(step: &Step) -> Option<Datagrams> {
    let several = step.antp.as_ref().is_some_and(|figures| {
        let alone = step.accompanying.is_none() && step.background.is_none();
        figures.early > 0 || !alone || step.tally.operation != Operation::Transfer
    });
    (!several).then(|| {
        let over_udp = tallies(step).filter(|tally| tally.operation == Operation::Transfer);
        over_udp.fold(Datagrams::default(), |sum, tally| {
            let came = [tally.answered, tally.invalid, tally.count_of(Cause::Late), tally.surplus];
            Datagrams {
                requests: sum.requests.saturating_add(tally.sent),
                answers: came.into_iter().fold(sum.answers, u64::saturating_add),
            }
        })
    })
}

/// What a host counted, without what the generator itself sent and read on it; `joined` of its requests left in one
/// message with another, which counts once. `None` if that is not known.
pub(crate) fn without_own(counted: Traffic, step: &Step, joined: u64) -> Option<Traffic> {
    let own = datagrams(step)?;
    let drops = step.evidence.as_ref().map(|evidence| evidence.drops).unwrap_or_default();
    Some(Traffic {
        read: counted.read.saturating_sub(own.answers),
        full: counted.full.saturating_sub(drops.unread),
        sent: counted
            .sent
            .saturating_sub(own.requests.saturating_sub(joined).saturating_sub(drops.send_buffer)),
        ..counted
    })
}

fn tallies(step: &Step) -> impl Iterator<Item = &Tally> {
    let others = [&step.accompanying, &step.background, &step.background_accompanying];
    std::iter::once(&step.tally).chain(others.into_iter().flatten())
}

/// A step, as the rules see it.
struct Case<'a> {
    step: &'a Step,
    is_closed: bool,
    evidence: Evidence,
    /// Operations that began, of all kinds.
    sent: u64,
    /// Those of them that failed.
    failed: u64,
}

impl<'a> Case<'a> {
    fn of(step: &'a Step) -> Self {
        let sum = |of: fn(&Tally) -> u64| tallies(step).map(of).fold(0, u64::saturating_add);
        Case {
            step,
            is_closed: step.offered_rps.is_none(),
            evidence: step.evidence.clone().unwrap_or_default(),
            sent: sum(|tally| tally.sent),
            failed: sum(|tally| tally.lost.saturating_add(tally.invalid)),
        }
    }

    /// How many operations failed for this reason.
    fn count_of(&self, cause: Cause) -> u64 {
        tallies(self.step).map(|tally| tally.count_of(cause)).fold(0, u64::saturating_add)
    }

    /// How many failed for one of these reasons.
    fn count_if(&self, test: impl Fn(Cause) -> bool) -> u64 {
        Cause::ALL.into_iter().filter(|&cause| test(cause)).map(|cause| self.count_of(cause)).sum()
    }

    /// Whether too many failed, of measured operations or of those that they need.
    fn loses(&self) -> bool {
        let parts = [Some(&self.step.tally), self.step.accompanying.as_ref()];
        parts.into_iter().flatten().any(|tally| tally.loss_ratio() >= LOSS_MIN)
    }

    fn server(&self) -> Option<Server> {
        self.step.server.map(Server)
    }
}

fn verdict(by: Limit, why: impl IntoIterator<Item = String>) -> Verdict {
    Verdict { by, why: why.into_iter().collect() }
}

/// Shares in whole percent.
fn part(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        format!("{} %", percent(share))
    } else {
        format!("{:.0} %", share * 100.0)
    }
}

// What the generator did not do.

fn generator_failed(case: &Case<'_>) -> Option<Verdict> {
    let late = if case.is_closed { None } else { late(case) };
    let mut why: Vec<String> = late.into_iter().chain(dropped(case)).chain(skipped(case)).collect();
    if why.is_empty() && !case.step.valid {
        why.extend(case.step.why_invalid.clone().or_else(|| Some("it did not do its part".to_owned())));
    }
    (!why.is_empty()).then(|| verdict(Limit::Generator, why))
}

/// How late requests were, and why.
fn late(case: &Case<'_>) -> Option<String> {
    let max_ns = lateness_max_ns(case.step.tally.operation);
    let late_us = case.step.lateness_us.map_or(0.0, |late| late.p99);
    let given_up = case.count_of(Cause::FellBehind);
    if given_up == 0 && late_us * 1000.0 <= max_ns as f64 {
        return None;
    }
    let mut text = format!("1 % of requests left {} late or more", microseconds(late_us));
    if given_up > 0 {
        text.push_str(&format!(", and {} were given up", count(given_up)));
    }
    let Evidence { idle_share, preempted_share, steal_share, stalls, .. } = &case.evidence;
    let (idle, held) = (idle_share.unwrap_or(0.0), preempted_share.unwrap_or(0.0));
    let stolen = steal_share.unwrap_or(0.0);
    if idle < IDLE_ENOUGH && held < HELD_MIN && stolen < HELD_MIN {
        if idle_share.is_some() {
            text.push_str(&format!(": the busiest sending thread had work {} of the time", part(1.0 - idle)));
        }
        return Some(format!("{text}; {OFFER_LESS}"));
    }
    if idle >= IDLE_ENOUGH {
        text.push_str(&format!(" though the busiest sending thread was idle {} of the time", part(idle)));
    }
    text.push_str(": something else had its processor");
    if held > 0.0 {
        text.push_str(&format!(", other threads or a quota for {} of the time", part(held)));
    }
    if stolen > 0.0 {
        text.push_str(&format!(", the hypervisor for {}", part(stolen)));
    }
    if stalls.count > 0 {
        let longest = microseconds(stalls.longest_us);
        text.push_str(&format!(
            "; it stood still {}, for {longest} at the longest",
            plural(stalls.count, "time")
        ));
    }
    Some(text + "; free the processor, or pin the generator elsewhere: more --workers do not help")
}

/// What the generator's hosts lost, and whether their clock can be relied on.
fn dropped(case: &Case<'_>) -> Vec<String> {
    let Evidence { drops, clock_jumps, .. } = &case.evidence;
    let mut why = Vec::new();
    if drops.unread > 0 {
        why.push(format!(
            "its sockets had no room for {}, as it had not read earlier ones; {OFFER_LESS}",
            plural(drops.unread, "answer")
        ));
    }
    // UDP counts what the queue refuses; others on the host may lose a few datagrams too.
    let gone = drops.send_buffer.max(drops.queue);
    if case.failed > 0 && (gone > strangers(case.sent) || gone.saturating_mul(2) >= case.failed) {
        why.push(format!(
            "its host dropped {} before they left, of {} lost: the queue of the interface {}, UDP {}; offer less, or \
             lengthen the queue",
            plural(gone, "request"),
            count(case.failed),
            count(drops.queue),
            count(drops.send_buffer)
        ));
    }
    if *clock_jumps > 0 {
        why.push(format!(
            "its clock was set {} meanwhile, by which latency is measured; repeat the step",
            plural(*clock_jumps, "time")
        ));
    }
    why
}

/// Operations that did not begin, by the generator's fault.
fn skipped(case: &Case<'_>) -> Vec<String> {
    let fate = |tally: &Tally| Fate { sent: tally.sent, failed: tally.lost.saturating_add(tally.invalid) };
    let own = &case.step.tally;
    let keys = case.step.accompanying.as_ref().map(fate).unwrap_or_default();
    let dry = want_of_cookies(own.count_of(Cause::NoCookie), own.scheduled, fate(own), keys);
    shortages(Subject::It, |cause| case.count_of(cause)).chain(dry).collect()
}

fn nothing_was_sent(case: &Case<'_>) -> Option<Verdict> {
    (case.sent == 0).then(|| verdict(Limit::Unknown, ["nothing was sent".to_owned()]))
}

fn generator_was_busy(case: &Case<'_>) -> Option<Verdict> {
    let idle = case.evidence.idle_share.filter(|&idle| idle < IDLE_MIN)?;
    let why = format!(
        "the busiest sending thread was idle {} of the time, so the rate is what this generator can do, not what the \
         server can; use more --workers or hosts",
        part(idle)
    );
    Some(verdict(Limit::Generator, [why]))
}

// What the server's processes did.

/// The server's processes during a step.
#[derive(Clone, Copy)]
struct Server(ServerUse);

impl Server {
    /// Share of the time in which its busiest thread had no time for more: it ran, or was kept from running. Waiting
    /// includes what a quota takes.
    fn occupied_share(self) -> Option<f64> {
        let Server(ServerUse { busiest_thread_share, waiting_share, throttled_share, stopped_share, .. }) =
            self;
        let waiting = waiting_share.or(throttled_share).unwrap_or(0.0);
        Some((busiest_thread_share? + waiting + stopped_share.unwrap_or(0.0)).min(1.0))
    }

    fn is_saturated(self) -> bool {
        self.occupied_share().is_some_and(|share| share >= SATURATED_MIN)
    }

    /// The share of the time in which other work had its processor, if that is long. What a quota takes does not count,
    /// so this is not known where the host does not count that.
    fn kept_from_running(self) -> Option<f64> {
        let Server(ServerUse { waiting_share, throttled_share, .. }) = self;
        let share = waiting_share? - throttled_share?;
        Some(share).filter(|&share| share >= HELD_MIN)
    }

    /// Whether a signal or a quota kept it from running for long.
    fn is_held_up(self) -> bool {
        let Server(ServerUse { throttled_share, stopped_share, .. }) = self;
        throttled_share.into_iter().chain(stopped_share).any(|share| share >= HELD_MIN)
    }

    fn told(self) -> String {
        let Server(ServerUse { busiest_thread_share, waiting_share, throttled_share, stopped_share, .. }) =
            self;
        let share = |share: Option<f64>, what: &str| {
            share.filter(|&share| share >= 0.005).map(|share| format!("{what} {} of the time", part(share)))
        };
        let running = busiest_thread_share.map(|share| format!("ran {} of the time", part(share)));
        let parts = [
            running,
            share(waiting_share, "waited for a processor"),
            share(throttled_share, "was kept from running by its quota"),
            share(stopped_share, "was stopped"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "how busy the server was is not known".to_owned(),
            false => format!("the server's busiest thread {}", parts.join(", ")),
        }
    }
}

fn server_was_busy(case: &Case<'_>) -> Option<Verdict> {
    let server = case.server().filter(|server| server.is_saturated())?;
    Some(verdict(Limit::Server, [server.told()]))
}

/// Without a loss, as with losses it is asked where they were.
fn server_was_held_up(case: &Case<'_>) -> Option<Verdict> {
    let server = case.server().filter(|server| server.is_held_up() && !case.loses())?;
    Some(verdict(Limit::Server, [format!("{}: requests waited", server.told())]))
}

// Where operations were lost.

/// Without a loss, but a longer step would have some.
fn backlog_grew(case: &Case<'_>) -> Option<Verdict> {
    let Tally { backlog, sent, .. } = case.step.tally;
    let grown = case.step.tally.unsustained();
    if case.loses() || grown as f64 <= LOSS_MIN * sent as f64 {
        return None;
    }
    let server = case.server();
    let by = match server.is_some_and(Server::is_saturated) {
        true => Limit::Server,
        false => Limit::Unknown,
    };
    let why = format!(
        "answers did not keep up: {} waited for theirs in the middle of the step, and {} at its end",
        count(backlog.middle),
        count(backlog.end)
    );
    Some(verdict(by, std::iter::once(why).chain(server.map(Server::told))))
}

fn nothing_was_lost(case: &Case<'_>) -> Option<Verdict> {
    let Tally { sent, answered, .. } = case.step.tally;
    let why = format!(
        "all requests left in time, and {} of {} were answered: less than {} % failed",
        count(answered),
        count(sent),
        percent(LOSS_MIN)
    );
    (!case.loses()).then(|| verdict(Limit::Nothing, [why]))
}

fn losses_of_note(case: &Case<'_>) -> Option<Verdict> {
    if case.loses() { losses(case) } else { None }
}

/// Which side lost more.
fn losses(case: &Case<'_>) -> Option<Verdict> {
    let mut found = Losses::default();
    for (cause_is_of, by, what) in BY_CAUSE {
        found.add(by, case.count_if(cause_is_of), what);
    }
    let silent = case.count_of(Cause::Timeout);
    let places = places(case);
    let mut unplaced = silent;
    let mut remark = None;
    let mut has_queued = false;
    match places {
        Ok(places) => {
            has_queued = places.full + places.unread > strangers(case.sent);
            for (by, number, what) in places.named() {
                let number = number.min(unplaced);
                found.add(by, number, what);
                unplaced -= number;
            }
        }
        Err(why) => remark = (silent > 0).then_some(why),
    }
    // What came too late, and what no counter placed: of a server that had no time left, its own. So it is of one whose
    // socket was full, or was not empty at the end: what came out of it had waited there.
    let unplaced = unplaced.saturating_add(case.count_if(is_open));
    let is_busy = case.server().is_some_and(|server| server.is_saturated() || server.is_held_up());
    let by = if is_busy || has_queued { Limit::Server } else { Limit::Unknown };
    found.add(by, unplaced, "got no answer in time");
    let (by, mut why) = found.weigh();
    why.extend(case.server().map(Server::told));
    why.extend(remark.filter(|_| by == Limit::Unknown));
    Some(verdict(by, why))
}

/// Which failures are whose, and what they are.
type Attribution = (fn(Cause) -> bool, Limit, &'static str);

/// Whose failures of some kinds are, whatever else is known.
const BY_CAUSE: [Attribution; 3] = [
    (Cause::is_invalid, Limit::Server, "were refused or answered wrongly"),
    (
        |cause| matches!(cause, Cause::Refused | Cause::Reset),
        Limit::Server,
        "found nobody listening, or were cut off",
    ),
    (
        |cause| matches!(cause, Cause::Unreachable),
        Limit::Path,
        "could not reach the server: the network said so",
    ),
];

/// Failures over which neither the answer nor a counter of UDP decides.
fn is_open(cause: Cause) -> bool {
    matches!(cause, Cause::Late | Cause::ConnectionTimedOut | Cause::ResourceTemporarilyUnavailable)
}

/// Failed operations by whose they are.
#[derive(Debug, Default)]
struct Losses(Vec<(Limit, u64, &'static str)>);

impl Losses {
    fn add(&mut self, by: Limit, number: u64, what: &'static str) {
        if number > 0 {
            self.0.push((by, number, what));
        }
    }

    /// Whose most are, and a sentence on each kind, most first. Equal numbers decide nothing.
    fn weigh(mut self) -> (Limit, Vec<String>) {
        let of = |by: Limit| -> u64 {
            self.0.iter().filter(|loss| loss.0 == by).map(|loss| loss.1).fold(0, u64::saturating_add)
        };
        let (server, path, unknown) = (of(Limit::Server), of(Limit::Path), of(Limit::Unknown));
        let by = match () {
            () if server > path && server > unknown => Limit::Server,
            () if path > server && path > unknown => Limit::Path,
            () => Limit::Unknown,
        };
        self.0.sort_by_key(|loss| (loss.0 != by, std::cmp::Reverse(loss.1)));
        let told = |(by, number, what): &(Limit, u64, &str)| format!("{by}: {} {what}", count(*number));
        (by, self.0.iter().map(told).collect())
    }
}

/// Where requests without an answer were lost, by the counters of the server's host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    there: u64,
    full: u64,
    unread: u64,
    unanswered: u64,
    back: u64,
}

impl Places {
    /// The largest first, so that a doubt about the sum is one about the smallest.
    fn named(self) -> Vec<(Limit, u64, &'static str)> {
        let mut all = vec![
            (Limit::Server, self.unanswered, "were read by the server and not answered"),
            (Limit::Server, self.full, "found its socket full"),
            (Limit::Server, self.unread, "waited unread in its socket at the end"),
            (Limit::Path, self.there, "never came to the server"),
            (Limit::Path, self.back, "were answered by the server, and the answer did not come"),
        ];
        all.sort_by_key(|place| std::cmp::Reverse(place.1));
        all
    }
}

/// How many datagrams of `requests` may be those of others on the same host.
fn strangers(requests: u64) -> u64 {
    STRANGER_COUNT.max(requests / STRANGER_SHARE)
}

/// Where requests were lost, or why that is not known.
fn places(case: &Case<'_>) -> Result<Places, String> {
    let Some(server) = case.step.server else {
        return Err(
            "name the server's process (--server-pid), on its host, to tell the server from the path"
                .to_owned(),
        );
    };
    let unknown = "what its host counts of UDP is not known";
    let Traffic { read, full, sent, unread, uncertain, .. } = server.traffic.ok_or(unknown)?;
    let Some(Datagrams { requests, answers }) = datagrams(case.step) else {
        // What found the socket full is known all the same.
        return Ok(Places { full, ..Places::default() });
    };
    let off = strangers(requests).saturating_add(uncertain);
    let above = |larger: u64, smaller: u64| larger > smaller.saturating_add(off);
    if above(answers, sent) || above(answers, read) {
        return Err(format!(
            "its host counts {} read and {} sent where {} came: the server bypasses the host's sockets, or packs \
             several datagrams into one",
            count(read),
            count(sent),
            plural(answers, "answer")
        ));
    }
    if above(sent, read) || above(read.saturating_add(full), requests) {
        return Err(format!(
            "its host counts {} read, {} dropped and {} sent where {} left here: it has other clients too",
            count(read),
            count(full),
            count(sent),
            plural(requests, "request")
        ));
    }
    // The network says of these that they did not come.
    let told = case.count_if(|cause| matches!(cause, Cause::Refused | Cause::Unreachable));
    let sure =
        |larger: u64, smaller: u64| Some(larger.saturating_sub(smaller)).filter(|&more| more > uncertain);
    let nowhere = sure(requests, read.saturating_add(full).saturating_add(told)).unwrap_or(0);
    let unread = unread.min(nowhere);
    Ok(Places {
        there: nowhere - unread,
        full,
        unread,
        unanswered: sure(read, sent).unwrap_or(0),
        back: sure(sent, answers).unwrap_or(0),
    })
}

/// Of a closed loop that lost nothing, in which the generator waited.
fn nobody_was_busy(case: &Case<'_>) -> Option<Verdict> {
    let waited = case.step.tally.latency_us.map(|latency| microseconds(latency.p50));
    let idle = case.evidence.idle_share;
    let occupied = case.server().and_then(Server::occupied_share);
    let own = match idle {
        Some(idle) => format!("the busiest sending thread was idle {} of the time", part(idle)),
        None => "how busy the sending threads were is not known".to_owned(),
    };
    let window = format!(
        "the window and the latency of {} set the rate: try a larger window (--closed)",
        waited.unwrap_or_else(|| "the way".to_owned())
    );
    let remark = match case.server() {
        Some(server) => server.told(),
        None => {
            "name the server's process (--server-pid), on its host, to tell the server from the path and the \
                 window"
                .to_owned()
        }
    };
    Some(match (idle, occupied) {
        (Some(_), Some(_)) => verdict(Limit::Path, [window, own, remark]),
        _ => verdict(Limit::Unknown, [own, remark]),
    })
}

#[cfg(test)]
mod tests;
