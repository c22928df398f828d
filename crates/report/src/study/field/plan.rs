//! The plan of the study: what it measures, in rounds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::scheme::Family;
use super::{Cell, Given, Level, Scheme, Server};
use crate::study::{Paper, Task};

/// What the study is to measure, how, and what became of it.
pub type Plan = crate::study::Plan<Settings>;

/// What turns out while a study goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Where servers and generator run: sentences.
    pub remarks: Vec<String>,
    /// Names and versions of the servers that were started.
    #[serde(default)]
    pub titles: BTreeMap<Server, String>,
}

/// What all trials of a study share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether the study is a short one.
    pub quick: bool,
    /// Who is measured.
    pub servers: Vec<Server>,
    /// Where those of them are that somebody else runs.
    pub given: Vec<Given>,
    /// What each is asked, as far as it has it.
    pub schemes: Vec<Scheme>,
    /// Rounds, in each of which every cell has one trial.
    pub rounds: u32,
    /// Seconds of a trial.
    pub trial_seconds: f64,
    /// Seconds of the same load before it, which do not count.
    pub warm_up_seconds: f64,
    /// Requests in flight.
    pub window: u32,
    /// Key exchanges in flight.
    pub exchange_window: u32,
    /// Rounds in which latency is taken, the first ones.
    pub latency_rounds: u32,
    /// Seconds of a trial of latency.
    pub latency_seconds: f64,
}

impl crate::study::Settings for Settings {
    const PAPER: Paper = Paper::Field;
    type Found = Found;
}

/// What a task measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How much a server answers under a scheme, in this round.
    Capacity(Cell, u32),
    /// How many keys a server exchanges in this round, and what that costs it.
    Exchange(Server, u32),
    /// How long it takes to answer at a share of what it answered in this round.
    Latency(Cell, Level, u32),
}

/// How the names of tasks begin, and the parts that they are.
const CAPACITY: &str = "capacity";
const EXCHANGE: &str = "exchange";
const LATENCY: &str = "latency";
/// Seconds that a trial takes beside its time: processes start and end, clients exchange keys.
const SPARE_SECONDS: f64 = 0.8;
const SPARE_SECONDS_NTS: f64 = 1.4;

impl Measure {
    /// The name of its task.
    #[must_use]
    pub fn id(self) -> String {
        match self {
            Measure::Capacity(cell, round) => format!("{CAPACITY}-{}-{round}", key(cell)),
            Measure::Exchange(server, round) => format!("{EXCHANGE}-{}-{round}", server.key()),
            Measure::Latency(cell, level, round) => {
                format!("{LATENCY}-{}-{}-{round}", key(cell), level.key())
            }
        }
    }

    /// What a task measures, by its name.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let (rest, round) = id.rsplit_once('-')?;
        let round = round.parse().ok().filter(|&round| round > 0)?;
        let cells =
            Server::BUILT_IN.into_iter().flat_map(|server| Scheme::ALL.map(|scheme| Cell { server, scheme }));
        let of_cell = |cell| {
            let latencies = Level::ALL.map(|level| Measure::Latency(cell, level, round));
            std::iter::once(Measure::Capacity(cell, round)).chain(latencies)
        };
        let exchanges = Server::BUILT_IN.map(|server| Measure::Exchange(server, round));
        let all = cells.into_iter().flat_map(of_cell).chain(exchanges);
        all.chain(Measure::of_given(rest, round)).find(|measure| measure.id() == id)
    }

    /// What a task measures at a server that somebody else runs, whose name may have hyphens: what such servers are
    /// asked has none.
    fn of_given(rest: &str, round: u32) -> Option<Self> {
        let (part, rest) = rest.split_once('-')?;
        let server = |name: &str| name.parse().ok().map(Server::Given);
        let cell = |rest: &str| {
            let (name, scheme) = rest.rsplit_once('-')?;
            let scheme = Scheme::ALL.into_iter().find(|known| known.key() == scheme)?;
            Some(Cell { server: server(name)?, scheme })
                .filter(|cell| cell.server.lacks(cell.scheme).is_none())
        };
        match part {
            CAPACITY => Some(Measure::Capacity(cell(rest)?, round)),
            EXCHANGE => Some(Measure::Exchange(server(rest)?, round)),
            LATENCY => {
                let (rest, level) = rest.rsplit_once('-')?;
                let level = Level::ALL.into_iter().find(|known| known.key() == level)?;
                Some(Measure::Latency(cell(rest)?, level, round))
            }
            _ => None,
        }
    }

    const fn part(self) -> &'static str {
        match self {
            Measure::Capacity(..) => CAPACITY,
            Measure::Exchange(..) => EXCHANGE,
            Measure::Latency(..) => LATENCY,
        }
    }

    /// The most that may be left out first has the highest: later rounds, and in the first one the schemes that the
    /// short form has not, and before them their latencies.
    fn priority(self) -> u8 {
        let later = |round: u32| u8::try_from(round).unwrap_or(u8::MAX);
        match self {
            Measure::Capacity(cell, 1) => u8::from(!Scheme::MAIN.contains(&cell.scheme)),
            Measure::Exchange(_, 1) => 1,
            Measure::Latency(cell, _, 1) => 1 + u8::from(!Scheme::MAIN.contains(&cell.scheme)),
            Measure::Capacity(_, round) | Measure::Exchange(_, round) => later(round),
            Measure::Latency(_, _, round) => later(round).saturating_add(1),
        }
    }
}

fn key(cell: Cell) -> String {
    format!("{}-{}", cell.server.key(), cell.scheme.key())
}

impl Settings {
    /// Where a server is that somebody else runs; `None` of others.
    #[must_use]
    pub fn given(&self, server: Server) -> Option<&Given> {
        self.given.iter().find(|given| Server::Given(given.name) == server)
    }

    /// Whether a server can be found.
    pub(super) fn knows(&self, server: Server) -> bool {
        Server::BUILT_IN.contains(&server) || self.given(server).is_some()
    }

    /// All servers that there may be trials of, in the order of tables.
    pub(super) fn all_servers(&self) -> impl Iterator<Item = Server> + '_ {
        Server::BUILT_IN.into_iter().chain(self.given.iter().map(|given| Server::Given(given.name)))
    }

    /// Why there is nothing to measure of a scheme at a server, as [`Server::lacks`] has it; or because of how little
    /// was said of that server.
    #[must_use]
    pub fn lacks(&self, server: Server, scheme: Scheme) -> Option<&'static str> {
        let is_nts = matches!(scheme, Scheme::Nts15 | Scheme::Nts30);
        let has_keys = self.given(server).is_none_or(|given| given.ke_port.is_some());
        let without = "is not asked for NTS, as no port of a key exchange was named";
        server.lacks(scheme).or((is_nts && !has_keys).then_some(without))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        Given::check_all(&self.given).map_err(|why| format!("settings, given: {why}"))?;
        match self.servers.iter().find(|server| !self.knows(**server)) {
            Some(stranger) => Err(format!("settings, servers: {:?} is nowhere", stranger.name())),
            None => Ok(()),
        }
    }

    /// What is asked of whom: scheme after scheme, so that servers take turns and what is compared is not far apart.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let servers = |&scheme: &Scheme| self.servers.iter().map(move |&server| Cell { server, scheme });
        let all = self.schemes.iter().flat_map(servers);
        all.filter(|cell| self.lacks(cell.server, cell.scheme).is_none()).collect()
    }

    /// Whose key exchanges are measured.
    fn exchangers(&self) -> impl Iterator<Item = Server> + '_ {
        let exchanges = |server: &Server| self.lacks(*server, server.exchanges_for()).is_none();
        self.servers.iter().copied().filter(exchanges)
    }

    /// What is to be measured: round after round, every other one backwards, so that nobody always follows the same
    /// one; key exchanges after the requests for time, and then latencies, which need to know what was answered.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let cells = self.cells();
        (1..=self.rounds)
            .flat_map(|round| {
                let capacities = cells.iter().map(|&cell| Measure::Capacity(cell, round)).collect();
                let exchanges = self.exchangers().map(|server| Measure::Exchange(server, round)).collect();
                let latencies = match round <= self.latency_rounds {
                    true => Level::ALL
                        .into_iter()
                        .flat_map(|level| cells.iter().map(move |&cell| Measure::Latency(cell, level, round)))
                        .collect(),
                    false => Vec::new(),
                };
                let turn = |mut measures: Vec<Measure>| {
                    if round.is_multiple_of(2) {
                        measures.reverse();
                    }
                    measures
                };
                [capacities, exchanges, latencies].into_iter().flat_map(turn).collect::<Vec<_>>()
            })
            .map(|measure| self.task(measure))
            .collect()
    }

    fn task(&self, measure: Measure) -> Task {
        let (seconds, spare) = match measure {
            Measure::Capacity(cell, _) => (self.trial_seconds, spare(cell.scheme)),
            Measure::Exchange(..) => (self.trial_seconds, SPARE_SECONDS),
            Measure::Latency(cell, ..) => (self.latency_seconds, spare(cell.scheme)),
        };
        let seconds = seconds + self.warm_up_seconds + spare;
        let task = Task::new(measure.id(), measure.part(), seconds, measure.priority());
        match measure {
            Measure::Latency(cell, _, round) => task.needing(Measure::Capacity(cell, round).id()),
            Measure::Capacity(..) | Measure::Exchange(..) => task,
        }
    }
}

/// Seconds that a trial takes beside its time.
const fn spare(scheme: Scheme) -> f64 {
    match scheme.family() {
        Family::Plain | Family::Mac => SPARE_SECONDS,
        Family::Antp | Family::Nts15 | Family::Nts30 => SPARE_SECONDS_NTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::field::tests::settings;

    #[test]
    fn tasks_are_found_by_their_names() {
        let tasks = settings().tasks();
        crate::study::task::check(&tasks).unwrap();
        for task in &tasks {
            assert_eq!(Measure::of(&task.id).unwrap().id(), task.id);
        }
        let strange = [
            "",
            "capacity",
            "capacity-chrony-plain",
            "capacity-chrony-plain-0",
            "capacity-chrony-plain-01",
            "capacity-cake-md5-1",
            "latency-chrony-plain-1",
            "latency-chrony-plain-40-1",
            "exchange-1",
            "capacity-1",
            "capacity-chrony-nts99-1",
            "capacity-my_own-plain-1",
            "latency-own-plain-60-1",
            "other-own-plain-1",
        ];
        for id in strange {
            assert_eq!(Measure::of(id), None, "{id}");
        }
    }

    #[test]
    fn every_cell_has_a_trial_in_each_round_and_keeps_one_when_time_is_short() {
        let settings = settings();
        let (tasks, cells) = (settings.tasks(), settings.cells());
        let (rounds, servers) = (settings.rounds as usize, settings.servers.len());
        let latencies = cells.len() * Level::ALL.len() * settings.latency_rounds as usize;
        assert_eq!(tasks.len(), (cells.len() + servers) * rounds + latencies);
        let first: Vec<&Task> = tasks.iter().filter(|task| task.priority <= 1).collect();
        assert_eq!(first.len(), cells.len() * 3 + servers);
        assert!(first.iter().all(|task| task.id.ends_with("-1")));
        // Without the plain rate of its round nothing has a share.
        assert_eq!(tasks[0].id, "capacity-authentick-plain-1");
        let of = |begin: &str, round: u32| {
            let end = format!("-{round}");
            let names = tasks.iter().map(|task| task.id.as_str());
            names.filter(|id| id.starts_with(begin) && id.ends_with(&end)).collect::<Vec<_>>()
        };
        assert_eq!(of("capacity", 2).last(), Some(&"capacity-authentick-plain-2"), "it goes backwards");
        assert_eq!(of("exchange", 2), ["exchange-chrony-2", "exchange-authentick-2"]);
        assert!(of("latency", 2).is_empty(), "there is one round of latency");
    }

    #[test]
    fn latency_needs_what_was_answered_in_its_round() {
        let tasks = settings().tasks();
        let task = tasks.iter().find(|task| task.id == "latency-chrony-nts15-90-1").unwrap();
        assert_eq!(task.needs, ["capacity-chrony-nts15-1"]);
    }

    #[test]
    fn nobody_is_asked_for_what_it_lacks() {
        let all =
            Settings { servers: Server::BUILT_IN.to_vec(), schemes: Scheme::ALL.to_vec(), ..settings() };
        let cells = all.cells();
        assert!(cells.contains(&Cell { server: Server::Chrony, scheme: Scheme::Cmac128 }));
        assert!(!cells.contains(&Cell { server: Server::NtpdRs, scheme: Scheme::Cmac128 }));
        assert_eq!(cells.len(), 17 + 10 + 2 + 2);
    }

    #[test]
    fn servers_of_somebody_else_are_asked_for_time_and_for_nts_if_their_key_exchange_is_known() {
        let given: Vec<Given> = ["plain-1=a:1", "x-antp=a:2:3"].map(|text| text.parse().unwrap()).to_vec();
        let [bare, whole] = [0, 1].map(|index: usize| Server::Given(given[index].name));
        let servers = vec![Server::Authentick, bare, whole];
        let settings = Settings { servers, given, schemes: Scheme::ALL.to_vec(), ..settings() };
        let of = |server| settings.cells().into_iter().filter(move |cell| cell.server == server).count();
        assert_eq!((of(bare), of(whole)), (1, 3));
        let tasks = settings.tasks();
        crate::study::task::check(&tasks).unwrap();
        for task in &tasks {
            assert_eq!(Measure::of(&task.id).unwrap().id(), task.id);
        }
        let exchanges = |server: &str| tasks.iter().filter(|task| task.id.starts_with(server)).count();
        assert_eq!((exchanges("exchange-plain-1-"), exchanges("exchange-x-antp-")), (0, 3));
        assert_eq!(Measure::of("capacity-x-antp-nts15-2"), {
            let cell = Cell { server: whole, scheme: Scheme::Nts15 };
            Some(Measure::Capacity(cell, 2))
        });
        assert!(settings.check().is_ok());
        let lost = Settings { given: Vec::new(), ..settings };
        assert!(lost.check().unwrap_err().contains("\"plain-1\" is nowhere"));
    }
}
