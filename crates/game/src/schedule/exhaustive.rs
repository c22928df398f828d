//! Every schedule up to a depth.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use authentick_wire::time::NtpSpan;
use serde::Serialize;

use super::random::LENGTH;
use super::{Board, Effect, Move, Start, Wander, wander};
use crate::model::Model;
use crate::protocol::{Family, Protocol};
use crate::referee::judge;
use crate::verdict::Verdict;

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Moves in a row, at most.
    pub depth: usize,
    /// Messages that the adversary looks at, at most.
    pub room: usize,
    /// Moves that change a message, at most; all moves may do so if there is none.
    pub changes: Option<usize>,
}

impl Limits {
    /// Any number of changes.
    #[must_use]
    pub const fn new(depth: usize, room: usize) -> Self {
        Limits { depth, room, changes: None }
    }

    /// The same with at most so many changes.
    #[must_use]
    pub const fn with_changes(self, changes: usize) -> Self {
        Limits { changes: Some(changes), ..self }
    }
}

/// An attack that was found: the first of its class among the shortest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attack {
    /// What came of it.
    pub verdict: Verdict,
    /// The last change, and, where their number is limited, those before it.
    pub class: String,
    /// All moves, in words.
    pub moves: Vec<String>,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Search {
    /// The protocol.
    pub protocol: String,
    /// How far clients were at its beginning.
    pub start: Start,
    /// Moves in a row, at most.
    pub depth: usize,
    /// Messages that the adversary looked at, at most.
    pub room: usize,
    /// Worlds that were gone on from, each once.
    pub worlds: u64,
    /// Moves that were made.
    pub moves: u64,
    /// Acceptances that were no win.
    pub bound: u64,
    /// Ways to win, one of each class.
    pub attacks: Vec<Attack>,
}

impl Search {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.attacks.is_empty()
    }
}

/// Makes every sequence of moves within `limits` in which each move has an effect, nobody has lost yet, and a client
/// gets something last; worlds that are alike are gone on from once.
#[must_use]
pub fn search(protocol: &dyn Protocol, seed: u64, start: Start, limits: Limits) -> Search {
    let Limits { depth, room, changes } = limits;
    let mut searching = Searching {
        found: Search {
            protocol: protocol.name().to_owned(),
            start,
            depth,
            room,
            worlds: 0,
            moves: 0,
            bound: 0,
            attacks: vec![],
        },
        left_at: HashMap::new(),
        attacks: BTreeMap::new(),
        path: Vec::new(),
        changes: changes.map(|_| Vec::new()),
    };
    let (board, model) = Board::new(protocol, seed, start, room);
    searching.go_on(&board, &model.fork(), Left { moves: depth, changes: changes.unwrap_or(depth) });
    let Searching { mut found, attacks, left_at, .. } = searching;
    found.worlds = left_at.len() as u64;
    found.attacks = attacks.into_values().collect();
    found
}

/// What a schedule may still do.
#[derive(Clone, Copy)]
struct Left {
    moves: usize,
    /// Never more than moves.
    changes: usize,
}

impl Left {
    /// After a move, if it is within the limits.
    fn after(self, one: Move) -> Option<Left> {
        let moves = self.moves.checked_sub(1)?;
        let changes = self.changes.checked_sub(usize::from(one.is_change()))?;
        Some(Left { moves, changes: changes.min(moves) })
    }

    const fn is_within(self, other: Left) -> bool {
        self.moves <= other.moves && self.changes <= other.changes
    }
}

struct Searching {
    found: Search,
    /// What was left where a world was gone on from.
    left_at: HashMap<u64, Vec<Left>>,
    attacks: BTreeMap<String, Attack>,
    path: Vec<String>,
    /// The changes on it; kept only if their number is limited, as ways to win are too many otherwise.
    changes: Option<Vec<String>>,
}

impl Searching {
    fn go_on(&mut self, board: &Board, model: &Model<'_>, left: Left) {
        if left.moves == 0 {
            return;
        }
        let before = self.left_at.entry(board.fingerprint(model)).or_default();
        if before.iter().any(|before| left.is_within(*before)) {
            return;
        }
        before.retain(|before| !before.is_within(left));
        before.push(left);
        // A move without an effect leaves the copy as it was, for the next one.
        let mut copy = None;
        for one in board.moves() {
            // Only what a client gets can be believed, so nothing else makes a difference as the last move.
            if left.moves == 1 && !matches!(one, Move::Deliver(..)) {
                continue;
            }
            let Some(left) = left.after(one) else { continue };
            let (mut next, mut world) = copy.take().unwrap_or_else(|| (board.clone(), model.fork()));
            self.found.moves += 1;
            let effect = next.make(&mut world, one);
            match effect {
                Effect::Nothing => copy = Some((next, world)),
                Effect::Changed => {
                    self.follow(board, one, |searching| searching.go_on(&next, &world, left));
                }
                Effect::Believed => {
                    let verdict = world.acceptances().last().map(|last| judge(last, None));
                    match verdict.filter(|verdict| verdict.is_win()) {
                        Some(verdict) => self.win(board, one, verdict),
                        None => {
                            self.found.bound += 1;
                            self.follow(board, one, |searching| searching.go_on(&next, &world, left));
                        }
                    }
                }
            }
        }
    }

    fn follow(&mut self, board: &Board, one: Move, go_on: impl FnOnce(&mut Self)) {
        self.path.push(board.says(one));
        let count = self.changes.as_ref().map_or(0, Vec::len);
        if let Some(changes) = &mut self.changes {
            changes.extend(board.change_of(one));
        }
        go_on(self);
        if let Some(changes) = &mut self.changes {
            changes.truncate(count);
        }
        self.path.pop();
    }

    fn win(&mut self, board: &Board, one: Move, verdict: Verdict) {
        let mut class = board.class_of(one);
        for change in self.changes.iter().flatten() {
            class = format!("{class}, after {change}");
        }
        let mut moves = self.path.clone();
        moves.push(board.says(one));
        let known = self.attacks.get(&format!("{verdict} {class}"));
        if known.is_none_or(|known| known.moves.len() > moves.len()) {
            self.attacks.insert(format!("{verdict} {class}"), Attack { verdict, class, moves });
        }
    }
}

/// Searches with the same limits, one behind the other.
#[derive(Clone, Debug, Serialize)]
pub struct Searches {
    /// From what all followed.
    pub seed: u64,
    /// Moves in a row, at most.
    pub depth: usize,
    /// Messages that the adversary looked at, at most.
    pub room: usize,
    /// What came of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Search>,
    /// Random schedules against each protocol, if those are played in place of all.
    pub random: Option<u64>,
    /// What came of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wanders: Vec<Wander>,
    /// Protocols of which it is expected that nothing is found.
    safe: Vec<String>,
}

impl Searches {
    /// None so far.
    #[must_use]
    pub fn new(seed: u64, depth: usize, room: usize, random: Option<u64>) -> Self {
        let (searches, wanders, safe) = (Vec::new(), Vec::new(), Vec::new());
        Searches { seed, depth, room, searches, random, wanders, safe }
    }

    /// Searches `protocols`, one behind the other; says when one is through.
    #[must_use]
    pub fn play(mut self, protocols: &[Box<dyn Protocol>], through: impl Fn()) -> Self {
        for protocol in protocols {
            self.search(protocol.as_ref());
            through();
        }
        self
    }

    /// Searches a protocol: from keys on, and, if there is something before them, from what that begins with and from
    /// the first message on.
    pub fn search(&mut self, protocol: &dyn Protocol) {
        // Only a bound on the round trip keeps what is late and genuine out.
        if !matches!(protocol.family(), Family::Plain | Family::Other) && protocol.bound().is_some() {
            self.safe.push(protocol.name().to_owned());
        }
        if let Some(schedules) = self.random {
            self.wanders.push(wander(protocol, self.seed, schedules, LENGTH));
            return;
        }
        for &start in Start::all(protocol) {
            self.searches.push(search(protocol, self.seed, start, Limits::new(self.depth, self.room)));
        }
    }

    /// Whether nothing was found where nothing is to be found.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        let is_safe = |name| self.safe.contains(name);
        self.searches.iter().all(|search| search.is_safe() || !is_safe(&search.protocol))
            && self.wanders.iter().all(|wander| wander.wins == 0 || !is_safe(&wander.protocol))
    }
}

impl fmt::Display for Searches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Searches { depth, room, wanders, .. } = self;
        if let Some(schedules) = self.random {
            write!(f, "{schedules} random schedules of {LENGTH} moves against each")?;
            write!(f, "\n\n{:14} {:>12} {:>12}  largest error, and its part", "protocol", "believed", "won")?;
            write!(f, "\n{:53} of the round trip", "")?;
            for Wander { protocol, believed, wins, error_max, share_max, .. } in wanders {
                let (error, share) = (NtpSpan::from_bits(*error_max), *share_max as f64 / 1000.0);
                let error = error.as_nanos() as f64 / 1e9;
                write!(f, "\n{protocol:14} {believed:>12} {wins:>12}  {error:>9.6} s  {share:.3}")?;
            }
            return Ok(());
        }
        writeln!(f, "every schedule of up to {depth} moves, with up to {room} messages")?;
        write!(
            f,
            "\n{:14} {:6} {:>12} {:>14} {:>10}  attacks",
            "protocol", "start", "worlds", "moves", "in bounds"
        )?;
        for search in &self.searches {
            let Search { protocol, start, worlds, moves, bound, attacks, .. } = search;
            let start = start.word();
            let found = if attacks.is_empty() { "none".to_owned() } else { attacks.len().to_string() };
            write!(f, "\n{protocol:14} {start:6} {worlds:>12} {moves:>14} {bound:>10}  {found}")?;
        }
        for search in self.searches.iter().filter(|search| !search.is_safe()) {
            write!(f, "\n\n{}", search.protocol)?;
            for Attack { verdict, class, moves } in &search.attacks {
                write!(f, "\n  {verdict:8}  {class}: {}", moves.join("; "))?;
            }
        }
        Ok(())
    }
}
