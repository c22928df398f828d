//! The plan of the study: what it measures, in rounds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cell, Scheme, Server};
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
}

/// How the names of these tasks begin, and the part that they are.
const CAPACITY: &str = "capacity";
/// Seconds that a trial takes beside its time: processes start and end, clients exchange keys.
const SPARE_SECONDS: f64 = 0.8;
const SPARE_SECONDS_NTS: f64 = 1.4;

impl Measure {
    /// The name of its task.
    #[must_use]
    pub fn id(self) -> String {
        let Measure::Capacity(Cell { server, scheme }, round) = self;
        format!("{CAPACITY}-{}-{}-{round}", server.key(), scheme.key())
    }

    /// What a task measures, by its name.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let cells =
            Server::ALL.into_iter().flat_map(|server| Scheme::ALL.map(|scheme| Cell { server, scheme }));
        cells.into_iter().find_map(|cell| {
            let begin = format!("{CAPACITY}-{}-{}-", cell.server.key(), cell.scheme.key());
            let round = id.strip_prefix(&begin)?.parse().ok()?;
            (round > 0).then_some(Measure::Capacity(cell, round))
        })
    }
}

impl Settings {
    /// What is asked of whom: scheme after scheme, so that servers take turns and what is compared is not far apart.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let servers = |&scheme: &Scheme| self.servers.iter().map(move |&server| Cell { server, scheme });
        let all = self.schemes.iter().flat_map(servers);
        all.filter(|cell| cell.server.lacks(cell.scheme).is_none()).collect()
    }

    /// What is to be measured: round after round, every other one backwards, so that nobody always follows the same
    /// one. What may be left out first are later rounds, and in the first one the schemes that the short form has not.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let cells = self.cells();
        (1..=self.rounds)
            .flat_map(|round| {
                let mut turn = cells.clone();
                if round.is_multiple_of(2) {
                    turn.reverse();
                }
                turn.into_iter().map(move |cell| self.task(cell, round))
            })
            .collect()
    }

    fn task(&self, cell: Cell, round: u32) -> Task {
        let priority = match round {
            1 => u8::from(!Scheme::MAIN.contains(&cell.scheme)),
            later => u8::try_from(later).unwrap_or(u8::MAX),
        };
        let spare = match cell.scheme {
            Scheme::Nts15 | Scheme::Nts30 | Scheme::Antp | Scheme::AntpSeparateTag => SPARE_SECONDS_NTS,
            Scheme::Plain
            | Scheme::Md5
            | Scheme::Sha1
            | Scheme::Sha256
            | Scheme::Sha384
            | Scheme::Sha512
            | Scheme::HmacMd5
            | Scheme::HmacSha224
            | Scheme::Cmac128
            | Scheme::Cmac256
            | Scheme::Gmac128
            | Scheme::GmacSiv128
            | Scheme::Poly1305 => SPARE_SECONDS,
        };
        let seconds = self.trial_seconds + self.warm_up_seconds + spare;
        Task::new(Measure::Capacity(cell, round).id(), CAPACITY, seconds, priority)
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
        for id in
            ["", "capacity", "capacity-chrony-plain", "capacity-chrony-plain-0", "capacity-cake-plain-1"]
        {
            assert_eq!(Measure::of(id), None, "{id}");
        }
    }

    #[test]
    fn every_cell_has_a_trial_in_each_round_and_keeps_one_when_time_is_short() {
        let settings = settings();
        let (tasks, cells) = (settings.tasks(), settings.cells());
        assert_eq!(tasks.len(), cells.len() * settings.rounds as usize);
        let first: Vec<&Task> = tasks.iter().filter(|task| task.priority <= 1).collect();
        assert_eq!(first.len(), cells.len());
        assert!(first.iter().all(|task| task.id.ends_with("-1")));
        // Without the plain rate of its round nothing has a share.
        assert_eq!(tasks[0].id, "capacity-authentick-plain-1");
        let lasts: Vec<&str> =
            tasks[cells.len()..2 * cells.len()].iter().map(|task| task.id.as_str()).collect();
        assert_eq!(lasts.last(), Some(&"capacity-authentick-plain-2"), "every other round goes backwards");
    }

    #[test]
    fn nobody_is_asked_for_what_it_lacks() {
        let all = Settings { servers: Server::ALL.to_vec(), schemes: Scheme::ALL.to_vec(), ..settings() };
        let cells = all.cells();
        assert!(cells.contains(&Cell { server: Server::Chrony, scheme: Scheme::Cmac128 }));
        assert!(!cells.contains(&Cell { server: Server::NtpdRs, scheme: Scheme::Cmac128 }));
        assert_eq!(cells.len(), 17 + 10 + 2 + 2);
    }
}
