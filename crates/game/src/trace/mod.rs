//! A game as others read it: who said what to whom, in words, and as a sequence diagram in text and SVG.

mod diagram;

use std::fmt;

use authentick_wire::time::NtpSpan;

pub use self::diagram::{Lane, inline, svg, text};
use crate::model::{
    Call, Certificate, Entry, OTHER_CLIENT, OTHER_SERVER, Party, SERVER, SERVICE, SessionId, VICTIM,
};
use crate::protocol::{self, Protocol};
use crate::strategy::{self, Played};

/// What happens between the adversary, who is the network, and a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message, from one lane to another.
    Message {
        /// Who sends it.
        from: Lane,
        /// Who gets it.
        to: Lane,
        /// What it is.
        kind: String,
        /// Whether the adversary has made or changed it.
        is_forged: bool,
    },
    /// What a party, or the adversary, makes of it or does.
    Remark {
        /// Who.
        lane: Lane,
        /// What.
        words: String,
    },
}

/// An event and when it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How far all clocks have run.
    pub now: NtpSpan,
    /// What happens.
    pub event: Event,
}

/// A game, step by step.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What is played: a line.
    pub title: String,
    /// The steps.
    pub steps: Vec<Step>,
}

/// More deliveries of one kind in a row are summed up.
const ALIKE_MAX: usize = 3;

/// Why there is no game to show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{strategy} has nothing to attack in {protocol}; see `authentick game list`")]
pub struct NotForIt {
    strategy: String,
    protocol: String,
}

impl Trace {
    /// Of a strategy against a protocol, by their names; and what was played.
    ///
    /// # Errors
    /// If one of them is unknown, or the strategy is not for the protocol.
    pub fn named(strategy: &str, protocol: &str, seed: u64) -> Result<(Self, Played), NotForIt> {
        let none = || NotForIt { strategy: strategy.to_owned(), protocol: protocol.to_owned() };
        let against = protocol::named(protocol).ok_or_else(none)?;
        let found = strategy::named(strategy).filter(|strategy| strategy.is_for(against.as_ref()));
        let played = found.ok_or_else(none)?.play(against.as_ref(), seed);
        Ok((Trace::of(&played, against.as_ref()), played))
    }

    /// Of what was played.
    #[must_use]
    pub fn of(played: &Played, protocol: &dyn Protocol) -> Self {
        let mut trace = Tracing { protocol, sessions: vec![], sent: vec![], steps: vec![] };
        for (index, entry) in played.log.entries().iter().enumerate() {
            for (_, words) in played.notes.iter().filter(|(before, _)| *before == index) {
                trace.remark(NtpSpan::from_bits(entry.now), Lane::Adversary, words.clone());
            }
            trace.entry(entry);
        }
        let end = played.log.entries().last().map_or(NtpSpan::ZERO, |entry| NtpSpan::from_bits(entry.now));
        trace.remark(end, Lane::Adversary, format!("verdict: {}", played.verdict));
        let title = format!("{} against {}: {}", played.strategy, played.protocol, played.title);
        Trace { title, steps: trace.steps }
    }
}

struct Tracing<'p> {
    protocol: &'p dyn Protocol,
    sessions: Vec<Party>,
    /// What parties have said.
    sent: Vec<Vec<u8>>,
    steps: Vec<Step>,
}

impl Tracing<'_> {
    fn remark(&mut self, now: NtpSpan, lane: Lane, words: String) {
        self.steps.push(Step { now, event: Event::Remark { lane, words } });
    }

    fn lane(&self, session: SessionId) -> Lane {
        self.sessions.get(session).map_or(Lane::Adversary, |party| Lane::of(*party))
    }

    fn kind(&self, message: &[u8]) -> String {
        format!("{}, {} octets", self.protocol.kind(message), message.len())
    }

    fn sends(&mut self, now: NtpSpan, lane: Lane, messages: &[Vec<u8>]) {
        for message in messages {
            let kind = self.kind(message);
            self.sent.push(message.clone());
            let event = Event::Message { from: lane, to: Lane::Adversary, kind, is_forged: false };
            self.steps.push(Step { now, event });
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let now = NtpSpan::from_bits(entry.now);
        let span = |bits: &i64| format!("{} passes", length(NtpSpan::from_bits(*bits)));
        match &entry.call {
            Call::CreateServer { party, .. } => self.sessions.push(*party),
            Call::CreateClient { party, .. } => {
                self.sessions.push(*party);
                self.sends(now, Lane::of(*party), &entry.messages);
            }
            Call::Impersonate { party, peer, certificate, .. } => {
                let secret = match certificate {
                    Certificate::Current => "long-term secret revealed",
                    Certificate::Expired => "secret of 20 years ago revealed",
                };
                self.remark(now, Lane::of(*peer), secret.to_owned());
                self.sessions.push(*party);
                let said = match entry.said.as_str() {
                    "" => "exchanges keys with the adversary".to_owned(),
                    said => said.to_owned(),
                };
                self.remark(now, Lane::of(*party), said);
                self.sends(now, Lane::of(*party), &entry.messages);
            }
            Call::GoOn { session, .. } => self.sends(now, self.lane(*session), &entry.messages),
            Call::Send { session, message, advances } => {
                let (lane, kind) = (self.lane(*session), self.kind(message));
                let is_forged = !self.sent.contains(message);
                let event = Event::Message { from: Lane::Adversary, to: lane, kind, is_forged };
                self.steps.push(Step { now, event });
                let passed: NtpSpan =
                    advances.iter().fold(NtpSpan::ZERO, |sum, bits| sum + NtpSpan::from_bits(*bits));
                if passed > SERVICE {
                    self.remark(now, lane, format!("{} passes meanwhile", length(passed)));
                }
                if !entry.said.is_empty() {
                    self.remark(now + passed, lane, entry.said.clone());
                }
                self.sends(now + passed, lane, &entry.messages);
            }
            Call::Tick { span: 0 } => {}
            Call::Tick { span: bits } => self.remark(now, Lane::Adversary, span(bits)),
            Call::TickAlone { session, span: bits } => {
                self.remark(now, self.lane(*session), format!("{}, by this clock alone", span(bits)));
            }
            Call::Reveal { session } => {
                self.remark(now, self.lane(*session), "session key revealed".to_owned());
            }
            Call::Corrupt { party } => {
                self.remark(now, Lane::of(*party), "long-term secret revealed".to_owned());
            }
            Call::CorruptState { party } => {
                self.remark(now, Lane::of(*party), "keys of cookies revealed".to_owned());
            }
            Call::Rotate { party } => {
                self.remark(now, Lane::of(*party), "keys of cookies rotated".to_owned());
            }
            Call::LoseState { party } => {
                self.remark(now, Lane::of(*party), "keys of cookies lost".to_owned());
            }
        }
    }
}

/// How long a span is; backwards it has a sign.
fn length(span: NtpSpan) -> String {
    span.to_string().trim_start_matches('+').to_owned()
}

/// When a step is, in seconds.
fn time(now: NtpSpan) -> String {
    format!("{:.6} s", now.as_nanos() as f64 / 1e9)
}

/// Steps with long runs of the same summed up: each with how many it stands for.
fn summed(steps: &[Step]) -> Vec<(&Step, usize)> {
    let mut summed: Vec<(&Step, usize)> = Vec::new();
    let mut at = 0;
    while at < steps.len() {
        // A run is one of a message to a party and what that says, again and again.
        let pair = |index: usize| steps.get(index..index + 2);
        let is_alike = |a: &[Step], b: &[Step]| {
            a.iter().zip(b).all(|(a, b)| match (&a.event, &b.event) {
                (Event::Message { to, is_forged, .. }, Event::Message { to: other, is_forged: too, .. }) => {
                    to == other && is_forged == too
                }
                (Event::Remark { lane, words }, Event::Remark { lane: other, words: others }) => {
                    let check = |words: &str| words.split(':').next().map(str::to_owned);
                    lane == other && check(words) == check(others)
                }
                _ => false,
            })
        };
        let mut count = 1;
        if let Some(first) = pair(at) {
            while pair(at + 2 * count).is_some_and(|next| is_alike(first, next)) {
                count += 1;
            }
        }
        if count > ALIKE_MAX {
            summed.extend([(&steps[at], count), (&steps[at + 1], count)]);
            at += 2 * count;
        } else {
            summed.push((&steps[at], 1));
            at += 1;
        }
    }
    summed
}

impl Lane {
    const fn of(party: Party) -> Self {
        match party {
            VICTIM => Lane::Victim,
            OTHER_CLIENT => Lane::OtherClient,
            SERVER => Lane::Server,
            OTHER_SERVER => Lane::OtherServer,
            Party(_) => Lane::Adversary,
        }
    }
}

/// In words, a line for each step.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for (step, count) in summed(&self.steps) {
            write!(f, "{:>12}  ", time(step.now))?;
            match &step.event {
                Event::Message { from, to, kind, is_forged } => {
                    let made = if *is_forged { " (made by the adversary)" } else { "" };
                    let times = if count > 1 { format!(", {count} such") } else { String::new() };
                    writeln!(f, "{} to {}: {kind}{made}{times}", from.name(), to.name())?;
                }
                Event::Remark { lane, words } => writeln!(f, "{}: {words}", lane.name())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Antp, Plain};
    use crate::strategy::named;

    fn trace(strategy: &str, protocol: &dyn Protocol) -> Trace {
        Trace::of(&named(strategy).unwrap().play(protocol, 1), protocol)
    }

    #[test]
    fn attack_is_told_with_what_the_adversary_made_and_what_came_of_it() {
        let trace = trace("rewrite-times", &Plain { bound: None });
        let words = trace.to_string();
        assert!(words.contains("victim to adversary: request, 48 octets\n"), "{words}");
        assert!(words.contains("adversary to server: request, 48 octets\n"), "{words}");
        assert!(words.contains("response, 48 octets (made by the adversary)\n"), "{words}");
        assert!(words.ends_with("adversary: verdict: WIN-AUTH\n"), "{words}");
        let diagram = text(&trace);
        assert!(diagram.contains("- request, 48 octets --->|"), "{diagram}");
        assert!(diagram.contains("|<=== response, 48 octets ="), "{diagram}");
        assert!(diagram.lines().all(|line| line.chars().count() <= 140), "{diagram}");
    }

    #[test]
    fn all_messages_of_antp_have_their_names() {
        let words = trace("faithful", &Antp { is_separate: true }).to_string();
        for name in ["m1", "m2", "m3", "m4", "m5", "early packet", "m6"] {
            assert!(words.contains(&format!(": {name}, ")), "{name}: {words}");
        }
    }

    #[test]
    fn flood_is_summed_up() {
        let trace = trace("truncation", &Antp { is_separate: false });
        assert!(trace.steps.len() > 400, "{}", trace.steps.len());
        let (words, picture) = (trace.to_string(), svg(&trace));
        assert!(words.lines().count() < 60 && words.contains(" such"), "{words}");
        assert!(picture.len() < 20_000 && picture.contains(" such"), "{}", picture.len());
    }

    #[test]
    fn picture_has_an_arrow_for_each_message() {
        let trace = trace("replay", &Plain { bound: None });
        let picture = svg(&trace);
        let messages = trace.steps.iter().filter(|step| matches!(step.event, Event::Message { .. })).count();
        assert_eq!(picture.matches("<polygon").count(), messages);
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());
    }

    #[test]
    fn several_pictures_stand_on_one_page() {
        let picture = inline(&trace("replay", &Plain { bound: None }));
        assert!(!picture.contains(" id=") && !picture.contains("<style"), "{picture}");
        assert!(picture.starts_with("<svg class=\"sequence\" "), "{picture}");
    }
}
