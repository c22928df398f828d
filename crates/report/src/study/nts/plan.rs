//! What a study of NTS measures: cells of one client, its server's key store and the path between them; ladders of
//! loads (`ladder`); operations alone; and what goes beyond the paper (`beyond`).

mod beyond;
mod ladder;

use serde::{Deserialize, Serialize};

pub use self::beyond::{Cookies, Pattern, SESSION_TRANSFERS, Workers};
pub use self::ladder::{Ladder, Rung, measured_of};
use super::operations::Operation;
use crate::study::{self, Paper, Task};

/// What a study is to measure, how, and what became of it.
pub type Plan = study::Plan<Settings>;

/// What turns out while a study goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Where server and client run: sentences.
    pub remarks: Vec<String>,
}

/// What all cells of a study share: cells under other settings are another study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether the study is a short one.
    pub quick: bool,
    /// Rounds before those that count.
    pub warm_ups: u32,
    /// Rounds of the cell that repeats the paper's experiment. In each, the client exchanges keys once, and asks for
    /// time with NTS and without.
    pub study_rounds: u32,
    /// Seconds from one of these to the next; 0: as fast as they end.
    pub study_interval_seconds: f64,
    /// Rounds of every other cell, which follow each other at once.
    pub rounds: u32,
    /// The same over the long path.
    pub long_rounds: u32,
    /// The least load of the ladder to scale, in key exchanges a second of the paper's axis.
    pub ladder_first_rps: u32,
    /// From one of its loads to the next.
    pub ladder_step_rps: u32,
    /// The most that it goes to.
    pub ladder_last_rps: u32,
    /// How long a step of a ladder offers its load, in seconds.
    pub step_seconds: f64,
    /// Steps of a ladder on a whole core.
    pub core_steps: u32,
    /// How long a client waits for a key exchange under load, in seconds.
    pub deadline_seconds: f64,
    /// Transfers after each key exchange under load, with one cookie.
    pub transfers: u32,
    /// Rounds in which operations alone take their turns.
    pub operation_rounds: u32,
    /// How long the turn of an operation lasts, in seconds.
    pub operation_seconds: f64,
    /// Sessions, or transfers alone, that are under way at once in a closed loop.
    pub session_window: u32,
    /// How long sessions begin, in seconds.
    pub session_seconds: f64,
    /// Rates at which transfers alone are offered to a server, from the end of the paper's axis up.
    pub rate_steps: u32,
    /// How long each of them is offered, in seconds.
    pub rate_seconds: f64,
}

impl study::Settings for Settings {
    const PAPER: Paper = Paper::Nts;
    type Found = Found;
}

/// Where the server keeps the keys of its cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// A memcached beside the server, as in the study.
    Memcached,
    /// A file.
    File,
}

impl Store {
    /// Both.
    pub const ALL: [Store; 2] = [Store::Memcached, Store::File];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Store::Memcached => "memcached",
            Store::File => "file",
        }
    }
}

/// What lies between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A cable between two namespaces, or loopback.
    Near,
    /// A round trip of 0.12 ms, as theirs by their capture.
    Study,
    /// A round trip of 70 ms.
    Long,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::Near, Way::Study, Way::Long];

    /// Its round trip in microseconds, beside what the machine itself takes.
    #[must_use]
    pub const fn round_trip_us(self) -> u32 {
        match self {
            Way::Near => 0,
            Way::Study => 120,
            Way::Long => 70_000,
        }
    }

    /// The same in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Near => "0 ms",
            Way::Study => "0.12 ms",
            Way::Long => "70 ms",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Way::Near => "0",
            Way::Study => "120us",
            Way::Long => "70ms",
        }
    }
}

/// One client at one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The paper's experiment: memcached, 0.12 ms, and a look-up of the server's name before everything.
    Study,
    /// Another combination, without a look-up.
    Other(Store, Way),
}

/// Seconds that a task takes beside its rounds: server and store start, hosts are laid out.
const SPARE_SECONDS: f64 = 2.0;
/// Seconds of a round beside the path's round trips.
const ROUND_SECONDS: f64 = 0.01;
/// Round trips of a round: three of the key exchange, and one each of both transfers.
const ROUND_TRIPS: f64 = 5.0;

impl Cell {
    /// All of them, in the order of measuring.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let others = Way::ALL.into_iter().flat_map(|way| Store::ALL.map(|store| Cell::Other(store, way)));
        std::iter::once(Cell::Study).chain(others).collect()
    }

    /// The cell that a task of this name measures, if there is one.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        Cell::all().into_iter().find(|cell| cell.id() == id)
    }

    /// The name of its task.
    #[must_use]
    pub fn id(self) -> String {
        match self {
            Cell::Study => "unloaded".to_owned(),
            Cell::Other(store, way) => format!("unloaded-{}-{}", store.name(), way.word()),
        }
    }

    /// Where the server keeps its keys.
    #[must_use]
    pub const fn store(self) -> Store {
        match self {
            Cell::Study => Store::Memcached,
            Cell::Other(store, _) => store,
        }
    }

    /// What lies between.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Cell::Study => Way::Study,
            Cell::Other(_, way) => way,
        }
    }

    /// Whether the client looks the server's name up before everything.
    #[must_use]
    pub const fn has_look_up(self) -> bool {
        matches!(self, Cell::Study)
    }

    /// It in words.
    #[must_use]
    pub fn name(self) -> String {
        let look_up = if self.has_look_up() { ", with look-ups" } else { "" };
        format!("{}, {}{look_up}", self.store().name(), self.way().name())
    }
}

/// Which operations are measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// Those of our server, a client's half of the handshake, and the read of a small file.
    Computed,
    /// A get from memcached.
    Memcached,
}

impl Operations {
    /// Both.
    pub const ALL: [Operations; 2] = [Operations::Computed, Operations::Memcached];

    /// The name of its task.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Operations::Computed => "operations",
            Operations::Memcached => "operations-memcached",
        }
    }
}

/// What a task measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// One client alone.
    Cell(Cell),
    /// Operations alone.
    Operations(Operations),
    /// What the server of a ladder serves, and how its rates follow from that.
    Scale(Ladder),
    /// A step of a ladder.
    Rung(Ladder, Rung),
    /// What a core serves of a pattern of key exchanges and transfers.
    Sessions(Pattern),
    /// Transfers alone past the rates of the paper.
    Rates(Workers),
}

impl Measure {
    /// The name of its task.
    #[must_use]
    pub fn id(self) -> String {
        match self {
            Measure::Cell(cell) => cell.id(),
            Measure::Operations(operations) => operations.id().to_owned(),
            Measure::Scale(ladder) => ladder.scale_id(),
            Measure::Rung(ladder, rung) => ladder.rung_id(rung),
            Measure::Sessions(pattern) => pattern.id(),
            Measure::Rates(workers) => workers.id().to_owned(),
        }
    }

    /// What a task of this name measures, if there is one.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let of_ladder = |ladder: Ladder| {
            let rung = match id.strip_prefix(&format!("ladder-{}-", ladder.word()))? {
                "unloaded" => Rung::Unloaded,
                load => Rung::Load(load.parse().ok().filter(|load| *load > 0)?),
            };
            Some(Measure::Rung(ladder, rung))
        };
        let scale = Ladder::ALL.into_iter().find(|ladder| ladder.scale_id() == id).map(Measure::Scale);
        let rung = || Ladder::ALL.into_iter().find_map(of_ladder);
        let of_name = |of: Measure| (of.id() == id).then_some(of);
        let others = || {
            let operations = Operations::ALL.map(Measure::Operations).into_iter();
            let sessions = Pattern::all().into_iter().map(Measure::Sessions);
            operations.chain(sessions).chain(Workers::ALL.map(Measure::Rates)).find_map(of_name)
        };
        let found = Cell::of(id).map(Measure::Cell).or(scale).or_else(rung).or_else(others);
        // A number has one name.
        found.filter(|found| found.id() == id)
    }
}

impl Settings {
    /// What is to be measured.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let cells = Cell::all().into_iter().map(|cell| self.task(cell));
        let operations = Operations::ALL.into_iter().map(|operations| self.operations(operations));
        let ladders = Ladder::ALL.into_iter().flat_map(|ladder| self.ladder(ladder));
        cells.chain(ladders).chain(operations).chain(self.beyond()).collect()
    }

    fn operations(&self, operations: Operations) -> Task {
        let turns = f64::from(self.operation_rounds) * self.operation_seconds;
        let seconds = match operations {
            // A handshake is one turn, for both halves and the whole of it.
            Operations::Computed => 1.0 + turns * (Operation::ALL.len() - 3) as f64,
            Operations::Memcached => SPARE_SECONDS + turns,
        };
        // To tenths: what is stored is read as the same number.
        Task::new(operations.id(), "operations", (seconds * 10.0).round() / 10.0, 1)
    }

    /// Rounds of a cell that count, and seconds from one to the next.
    #[must_use]
    pub const fn rounds_of(&self, cell: Cell) -> (u32, f64) {
        match cell {
            Cell::Study => (self.study_rounds, self.study_interval_seconds),
            Cell::Other(_, Way::Near | Way::Study) => (self.rounds, 0.0),
            Cell::Other(_, Way::Long) => (self.long_rounds, 0.0),
        }
    }

    fn task(&self, cell: Cell) -> Task {
        let (rounds, interval) = self.rounds_of(cell);
        let round = f64::from(cell.way().round_trip_us()) / 1e6 * ROUND_TRIPS + ROUND_SECONDS;
        let all = f64::from(rounds) * round.max(interval) + f64::from(self.warm_ups) * round;
        let (part, priority) = match cell {
            Cell::Study => ("table-2", 0),
            Cell::Other(Store::File, Way::Near) => ("cells", 0),
            Cell::Other(_, Way::Near | Way::Study) => ("cells", 2),
            Cell::Other(_, Way::Long) => ("long-path", 3),
        };
        // To tenths: what is stored is read as the same number.
        Task::new(cell.id(), part, ((SPARE_SECONDS + all) * 10.0).round() / 10.0, priority)
    }

    /// How it differs from the paper's experiment, in a sentence; `None` if it does not.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        use crate::published::nts::UNLOADED_COUNT;
        let same = self.study_rounds == UNLOADED_COUNT && self.study_interval_seconds == 1.0;
        let pace = match self.study_interval_seconds {
            0.0 => "as fast as they end".to_owned(),
            seconds => format!("each {seconds} s"),
        };
        (!same).then(|| {
            format!(
                "This is a short study{}: {} rounds, {pace}, instead of {UNLOADED_COUNT}, one a second.",
                if self.quick { " (--quick)" } else { "" },
                self.study_rounds
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::nts::tests::settings;

    #[test]
    fn tasks_are_found_by_their_names_and_are_sound() {
        let tasks = settings().tasks();
        assert_eq!(tasks.len(), 1 + 2 * 3 + 2 + 3 * (1 + 1 + 16) + 3 + 2 * 5 + 2);
        study::task::check(&tasks).unwrap();
        for (task, cell) in tasks.iter().zip(Cell::all()) {
            assert_eq!(Cell::of(&task.id), Some(cell));
        }
        for task in &tasks {
            assert_eq!(Measure::of(&task.id).map(Measure::id).as_deref(), Some(task.id.as_str()));
        }
        let core = Measure::Rung(Ladder::WholeCore(Store::Memcached), Rung::Load(7));
        assert_eq!(core.id(), "ladder-core-memcached-7");
        for id in [
            "",
            "unloaded-",
            "unloaded-file",
            "unloaded-file-120us-2",
            "scale",
            "scale-quota-1",
            "ladder-quota",
            "ladder-quota-",
            "ladder-quota-0",
            "ladder-quota-0100",
            "ladder-quota-+100",
            "ladder-core-memcached-unloaded-1",
            "operations-",
            "sessions-2-fresh",
            "sessions-3",
            "sessions-03-fresh",
            "transfers-alone",
            "rates",
            "rates-3-workers",
        ] {
            assert_eq!(Measure::of(id), None, "{id}");
        }
    }

    #[test]
    fn paper_s_experiment_and_what_needs_nothing_of_the_host_come_first_when_time_is_short() {
        let first: Vec<String> =
            settings().tasks().into_iter().filter(|task| task.priority == 0).map(|task| task.id).collect();
        assert_eq!(first, ["unloaded", "unloaded-file-0"]);
    }

    #[test]
    fn study_that_is_shorter_than_the_paper_s_says_so() {
        let short = settings().difference().unwrap();
        assert!(short.contains("--quick") && short.contains("as fast as they end"), "{short}");
        let whole = Settings { quick: false, study_rounds: 1000, study_interval_seconds: 1.0, ..settings() };
        assert_eq!(whole.difference(), None);
        let slower = Settings { study_interval_seconds: 0.5, ..whole };
        assert!(slower.difference().unwrap().contains("1000 rounds, each 0.5 s"));
    }
}
