//! How many games does a core play in a second?
//!
//! Goal: time-sync sessions a second of each protocol, in the model with its bookkeeping, beside the same messages
//! between client and server alone; and what is left of that where each session begins with its first message, which
//! under ANTP is bounded by public-key work. Non-goals: searches, which share what games have in common.
//!
//! Run with `cargo bench -p authentick-game --bench sessions`; among the tests it runs once, with short rounds. Names
//! of protocols as arguments run these alone.

use std::time::{Duration, Instant};

use authentick_crypto::Entropy;
use authentick_game::model::{Model, SERVER, SERVICE, START, SessionId, VICTIM};
use authentick_game::protocol::{self, Client, Family, Heard, Protocol};
use authentick_sim::{Arrival, Server};

const ROUNDS: usize = 9;

/// Sessions between two looks at the clock.
const CHUNK: u32 = 16;

fn main() {
    let is_full = std::env::args().any(|argument| argument == "--bench");
    let budget = if is_full { Duration::from_millis(200) } else { Duration::from_micros(200) };
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!("Sessions a second on one core (medians of {ROUNDS} rounds of {budget:?})");
    println!(
        "{:14} {:>12} {:>12} {:>7} {:>12}",
        "protocol", "without game", "in a game", "ratio", "from scratch"
    );
    for protocol in protocol::among(&wanted) {
        let (mut alone, game) = (Alone::new(protocol.as_ref()), Game::new(protocol.as_ref()));
        let mut rates = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            let floor = rate(budget, || alone.play());
            let played = rate(budget, || game.play());
            let whole = rate(budget, || whole(protocol.as_ref(), &game.begun));
            [floor, played, played / floor, whole]
                .iter()
                .zip(&mut rates)
                .for_each(|(one, all)| all.push(*one));
        }
        let [floor, played, ratio, whole] = rates.map(median);
        println!("{:14} {floor:>12.0} {played:>12.0} {ratio:>7.3} {whole:>12.0}", protocol.name());
    }
}

/// How often `one` is done in a second.
fn rate(budget: Duration, mut one: impl FnMut()) -> f64 {
    let (begin, mut count) = (Instant::now(), 0);
    loop {
        (0..CHUNK).for_each(|_| one());
        count += CHUNK;
        let took = begin.elapsed();
        if took >= budget {
            return f64::from(count) / took.as_secs_f64();
        }
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A client with what it needs to ask for time, and its server, without a model.
struct Alone {
    server: Server,
    client: Box<dyn Client>,
    count: u64,
}

impl Alone {
    fn new(protocol: &dyn Protocol) -> Self {
        let mut server = protocol.server(SERVER, 1);
        let client = protocol.client(VICTIM, &mut server, 1);
        let mut alone = Alone { server, client, count: 0 };
        // What comes before time is done once.
        let has_phases = matches!(protocol.family(), Family::Antp | Family::AntpSeparate);
        while has_phases && alone.client.secret().is_none() {
            let mut client = alone.client.fork();
            alone.exchange(client.as_mut());
            alone.client = client;
        }
        alone
    }

    /// One request, and what becomes of the answers to it.
    fn exchange(&mut self, client: &mut dyn Client) -> Option<Heard> {
        self.count += 1;
        let mut entropy = Entropy::from_seed(self.count);
        let octets = client.ask(START, 0, &mut entropy).expect("there is something to ask with");
        let arrival = Arrival { source: ([198, 18, 0, 2], 123).into(), received: START, octets };
        let answer = self.server.answer(arrival, START + SERVICE);
        answer.datagrams.iter().map(|datagram| client.receive(datagram, START + SERVICE, 0)).last()
    }

    fn play(&mut self) {
        let mut client = self.client.fork();
        let heard = self.exchange(client.as_mut());
        assert!(matches!(heard, Some(Heard::Time(_))), "{heard:?}");
    }
}

/// The same in a model.
struct Game<'p> {
    /// Before there is a client.
    begun: Model<'p>,
    /// With one that can ask for time.
    ready: Model<'p>,
    victim: SessionId,
}

/// The server's session.
const SERVING: SessionId = 0;

impl<'p> Game<'p> {
    fn new(protocol: &'p dyn Protocol) -> Self {
        let mut begun = Model::new(protocol, 1).without_log();
        begun.create_server(SERVER, START);
        let mut ready = begun.fork();
        let (victim, mut requests) = ready.create_client(VICTIM, SERVER, START);
        while requests.first().is_some_and(|request| !protocol.asks_for_time(request)) {
            requests = answered(&mut ready, victim, &requests[0]);
        }
        Game { begun, ready, victim }
    }

    fn play(&self) {
        let mut model = self.ready.fork();
        let request = model.go_on(self.victim, &[]).remove(0);
        answered(&mut model, self.victim, &request);
        assert_eq!(model.acceptances().len(), 1);
    }
}

/// What a client says to the answers to its request.
fn answered(model: &mut Model<'_>, client: SessionId, request: &[u8]) -> Vec<Vec<u8>> {
    let answers = model.send(SERVING, request, &[]).messages;
    answers.iter().flat_map(|answer| model.send(client, answer, &[]).messages).collect()
}

/// A session from its first message on.
fn whole(protocol: &dyn Protocol, begun: &Model<'_>) {
    let mut model = begun.fork();
    let (client, mut requests) = model.create_client(VICTIM, SERVER, START);
    while let Some(request) = requests.first().cloned() {
        requests = answered(&mut model, client, &request);
        if requests.is_empty() && model.acceptances().is_empty() {
            requests = model.go_on(client, &[]);
        }
    }
    assert_eq!(model.acceptances().len(), 1, "{}", protocol.name());
}
