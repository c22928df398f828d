//! The load under which each scenario takes place: `keys drill` asks all nodes with cookies of all, at a set rate.

use std::collections::BTreeSet;
use std::time::Duration;

use authentick_lab::process::Process;
use serde_json::Value;

use super::{Fleet, KE, NAMES, NTP, client, value};
use crate::lab::wait_for;

/// Requests a second, to all nodes together.
const RATE: u32 = 400;

/// What may be lost besides what is sent while nobody is there: so much is under way when a server is killed.
const IN_FLIGHT: Duration = Duration::from_secs(1);

/// A drill under way.
struct Load {
    process: Process,
    /// The key that sealed when it began.
    key: u32,
    /// How long each node had been away until then.
    outages: [Duration; NAMES.len()],
}

impl Fleet<'_> {
    /// Does `work` while cookies of all go to all, and sees that nobody was refused, and that nothing was lost but what
    /// was sent to a node that was killed. A failure names the scenario.
    #[track_caller]
    pub(super) fn under_load(&mut self, scenario: &'static str, work: impl FnOnce(&mut Self)) {
        let _named = Scenario(scenario);
        let load = Load::start(self);
        work(self);
        load.end(self);
        (0..NAMES.len()).for_each(|index| self.is_unharmed(index));
    }

    /// What `keys drill` with these arguments sees, once it has ended by itself.
    pub(super) fn drill(&self, key_exchanges: &[usize], arguments: &[&str]) -> Value {
        let mut process = self.begin_drill(key_exchanges, arguments);
        process.wait();
        seen(&process)
    }

    fn begin_drill(&self, key_exchanges: &[usize], arguments: &[&str]) -> Process {
        let mut command = client(self.hosts);
        command.args(["keys", "drill", "--json", "--ca"]).arg(self.authorities()).args(arguments);
        for index in key_exchanges {
            command.args(["--key-exchange", &self.address(*index, KE)]);
        }
        for index in 0..NAMES.len() {
            command.args(["--server", &self.address(index, NTP)]);
        }
        Process::start(&mut command)
    }

    /// Waits until each node has been asked some more.
    fn is_asked(&self) {
        let received = |index| self.metric(index, "ntp_server_received_packets_total");
        let before = [0, 1, 2, 3].map(received);
        for (index, before) in before.into_iter().enumerate() {
            wait_for("requests of the drill", || (received(index) > before).then_some(()));
        }
    }

    /// Waits until all nodes have said that they seal with the key that `a` seals with.
    pub(super) fn seal_alike(&self) {
        let said = format!("key {:08x} is now current", self.sealing_key(0));
        for (index, name) in NAMES.iter().enumerate() {
            wait_for(&format!("{name} to say {said:?}"), || self.lines(index, &said).pop());
        }
    }

    /// The keys under which a node opens cookies.
    pub(super) fn opens(&self, index: usize) -> BTreeSet<String> {
        keys_of(&self.page(index))
    }

    /// The key that a node seals with.
    pub(super) fn sealing_key(&self, index: usize) -> u32 {
        let page = self.page(index);
        let seals = |id: &String| value(&page, &format!("nts_cookie_key_seals{{key={id:?}}}")) == 1.0;
        u32::from_str_radix(&keys_of(&page).into_iter().find(seals).expect("one seals"), 16).unwrap()
    }
}

/// The keys of which a page of metrics counts requests.
fn keys_of(page: &str) -> BTreeSet<String> {
    let id =
        |line: &str| Some(line.strip_prefix("nts_cookie_key_requests_total{key=\"")?.get(..8)?.to_owned());
    page.lines().filter_map(id).collect()
}

impl Load {
    fn start(fleet: &Fleet<'_>) -> Self {
        let rate = RATE.to_string();
        // More rotations than there can be: it ends when it is told to.
        let arguments = ["--rotations", "100000", "--keep", "7", "--rate", &rate, "--for", "10m"];
        let process = fleet.begin_drill(&[0, 1, 2, 3], &arguments);
        fleet.is_asked();
        let outages = [0, 1, 2, 3].map(|index| fleet.nodes[index].outage);
        Load { process, key: fleet.sealing_key(0), outages }
    }

    /// Ends it, and looks at what it has seen.
    #[track_caller]
    fn end(mut self, fleet: &Fleet<'_>) {
        fleet.is_asked();
        let rotations = fleet.sealing_key(0).wrapping_sub(self.key);
        assert!(!self.process.log().contains('{'), "it has ended early: {}", self.process.log());
        self.process.signal("-INT");
        assert_eq!(self.process.wait(), 1, "it has not seen all rotations: {}", self.process.log());
        let seen = seen(&self.process);
        assert_eq!((&seen["total"]["ntsn"], &seen["total"]["invalid"]), (&0.into(), &0.into()), "{seen}");
        // The last one may have come too late for it.
        assert!(
            seen["rotations"].as_u64() >= Some(u64::from(rotations).saturating_sub(1)),
            "{rotations}: {seen}"
        );
        for (index, node) in fleet.nodes.iter().enumerate() {
            let address = fleet.address(index, NTP);
            let lines = seen["lines"].as_array().unwrap().iter().filter(|line| line["server"] == *address);
            let lines: Vec<&Value> = lines.collect();
            let has_answered = |exchange| {
                let of = fleet.address(exchange, KE);
                lines.iter().any(|line| line["key_exchange"] == *of && line["answered"] != 0)
            };
            assert!((0..NAMES.len()).all(has_answered), "{}: {seen}", NAMES[index]);
            let away = node.outage - self.outages[index];
            let lost: u64 = lines.iter().map(|line| line["lost"].as_u64().unwrap()).sum();
            let most = match away.is_zero() {
                true => 0.0,
                false => f64::from(RATE) / NAMES.len() as f64 * (away + IN_FLIGHT).as_secs_f64(),
            };
            assert!(lost as f64 <= most, "{lost} lost at {}, away for {away:?}: {seen}", NAMES[index]);
            let [sent, answered] = ["sent", "answered"]
                .map(|name| lines.iter().map(|line| line[name].as_u64().unwrap()).sum::<u64>());
            assert_eq!(sent, answered + lost, "{}: {seen}", NAMES[index]);
        }
        eprintln!("{rotations} rotations; {}", seen["total"]);
    }
}

/// What a drill that has ended has seen.
#[track_caller]
fn seen(process: &Process) -> Value {
    let log = process.log();
    let start = log.find('{').unwrap_or_else(|| panic!("it has seen nothing: {log}"));
    serde_json::from_str(&log[start..]).unwrap_or_else(|error| panic!("{error}: {log}"))
}

/// Names the scenario in which a test fails.
pub(super) struct Scenario(pub(super) &'static str);

impl Drop for Scenario {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was the scenario: {}", self.0);
        }
    }
}
