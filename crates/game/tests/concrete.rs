//! A security bound that is measured: tags and nonces of 8 to 16 bits in place of 128 and 64, and how often an
//! adversary wins, beside the terms of the theorem.
//!
//! The theorem bounds the advantage of an adversary that makes q guesses at a tag of b bits by q / 2^b, and that of one
//! who has kept n answers to requests with nonces of b bits by n / 2^b. Its form is reconstructed, as the text of the
//! paper that could be had ends before it. Games follow from a seed, so the page that this test keeps is the same on
//! every machine; `AUTHENTICK_UPDATE_GOLDEN=1` writes it anew.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::{fs, thread};

use authentick_crypto::Entropy;
use authentick_game::model::{Model, SERVER, START, SessionId, VICTIM};
use authentick_game::protocol::{Antp, Family, Keys, Mac, Nts, Protocol, header_of};
use authentick_game::referee::judge;
use authentick_proto::mutant::{Narrow, narrowed};
use authentick_wire::time::NtpSpan;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security-bound.md");
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security-bound.svg");

/// Bits of what is narrow, and of what is not.
const BITS: [u32; 5] = [8, 10, 12, 14, 16];
const ALL_BITS: u32 = 64;

/// Guesses, or kept answers, in a game.
const TRIES: [u64; 3] = [1, 8, 64];

/// How much is played for each row.
#[derive(Clone, Copy)]
struct Effort {
    /// Guesses at a tag, spread over games.
    guesses: u64,
    /// Games with narrow nonces, for one kept answer; fewer for more.
    replays: u64,
}

/// A few seconds.
const SMALL: Effort = Effort { guesses: 30_000, replays: 1_500 };
/// A few minutes, with optimisation.
const LARGE: Effort = Effort { guesses: 3_000_000, replays: 150_000 };

/// Exchanges with the keys of one handshake: a world looks for what a client believes among all that its servers said.
const EXCHANGES_OF_A_WORLD: u64 = 200;

/// From kept responses to the next request: more than a response may be off, and little of what a session lives.
const LATER: NtpSpan = NtpSpan::from_nanos(10_000_000_000);

/// By how much a forged response is off.
const HOUR: NtpSpan = NtpSpan::from_nanos(3_600_000_000_000);

/// A way to win that the theorem has a term for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forge,
    Replay,
}

/// How often an adversary won.
struct Row {
    way: Way,
    protocol: String,
    bits: u32,
    tries: u64,
    games: u64,
    wins: u64,
}

impl Row {
    /// The probability that follows if tags and nonces are uniform: no tag is guessed twice in a game, but nonces may
    /// be equal.
    fn expected(&self) -> f64 {
        match self.way {
            Way::Forge => self.term(),
            Way::Replay => 1.0 - (1.0 - 0.5_f64.powi(self.bits as i32)).powi(self.tries as i32),
        }
    }

    /// The term of the theorem.
    fn term(&self) -> f64 {
        self.tries as f64 / 2_f64.powi(self.bits as i32)
    }

    fn measured(&self) -> f64 {
        self.wins as f64 / self.games as f64
    }

    /// Wilson's score interval at 99.9 %.
    fn interval(&self) -> (f64, f64) {
        const Z: f64 = 3.2905;
        let (n, p) = (self.games as f64, self.measured());
        let (centre, spread) =
            (p + Z * Z / (2.0 * n), Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt());
        let width = 1.0 + Z * Z / n;
        (((centre - spread) / width).max(0.0), ((centre + spread) / width).min(1.0))
    }
}

/// A world, drawn from `seed`, with a client that has what it needs to ask for time.
fn world(protocol: &dyn Protocol, seed: u64) -> (Model<'_>, SessionId, SessionId) {
    let mut model = Model::new(protocol, seed).without_log();
    let server = model.create_server(SERVER, START);
    let (victim, mut requests) = model.create_client(VICTIM, SERVER, START);
    while let Some(request) = requests.first().filter(|request| !protocol.asks_for_time(request)) {
        let answers = model.send(server, request, &[]).messages;
        requests = answers.iter().flat_map(|answer| model.send(victim, answer, &[]).messages).collect();
        if requests.is_empty() {
            break;
        }
    }
    (model, server, victim)
}

/// The next request of a client, which gives up the one before.
fn ask(model: &mut Model<'_>, victim: SessionId) -> Vec<u8> {
    model.go_on(victim, &[]).into_iter().next().expect("a client that has keys asks")
}

/// An exchange that nobody disturbs, after which a client of NTS has all of its cookies; the responses.
fn undisturbed(model: &mut Model<'_>, server: SessionId, victim: SessionId) -> Vec<Vec<u8>> {
    let before = model.acceptances().len();
    let request = ask(model, victim);
    let answers = model.send(server, &request, &[]).messages;
    answers.iter().for_each(|answer| {
        model.send(victim, answer, &[]);
    });
    assert_eq!(model.acceptances().len(), before + 1, "the client has keys");
    answers
}

fn has_won(model: &Model<'_>, before: usize) -> bool {
    model.acceptances()[before..].iter().any(|acceptance| judge(acceptance, None).is_win())
}

/// Games in each of which an adversary makes `tries` guesses at the tag of a response that is an hour off.
fn forge(protocol: &dyn Protocol, bits: u32, tries: u64, effort: Effort) -> Row {
    let mut played = world(protocol, 0);
    let mut entropy = Entropy::from_seed(u64::from(bits) << 32 | tries);
    let games = effort.guesses / tries;
    let won = |game: u64| {
        if game.is_multiple_of(EXCHANGES_OF_A_WORLD) {
            played = world(protocol, game);
        }
        let (model, server, victim) = (&mut played.0, played.1, played.2);
        if protocol.family() == Family::Nts {
            undisturbed(model, server, victim);
        }
        let request = ask(model, victim);
        let wrong = model.clock(server) + HOUR;
        let mut forged = protocol.forge(None, &request, &header_of(&request, wrong, wrong)).unwrap();
        let (before, end) = (model.acceptances().len(), forged.len());
        // A guess at the whole field of the tag, never the same in its first bits twice in a game.
        let size = if protocol.family() == Family::Antp { 32 } else { 16 };
        let first = entropy.u64();
        for number in 0..tries {
            let tag = &mut forged[end - size..];
            entropy.fill(tag);
            tag[..8].copy_from_slice(&first.wrapping_add(number << (ALL_BITS - bits)).to_be_bytes());
            model.send(victim, &forged, &[]);
        }
        has_won(model, before)
    };
    let wins = (0..games).map(won).filter(|won| *won).count() as u64;
    Row { way: Way::Forge, protocol: protocol.name().to_owned(), bits, tries, games, wins }
}

/// Games in each of which an adversary has kept the responses to `tries` requests, and replays them to the next.
fn replay(protocol: &dyn Protocol, bits: u32, tries: u64, effort: Effort) -> Row {
    let mut wins = 0;
    let games = effort.replays / tries.isqrt();
    let mut played = world(protocol, 0);
    for game in 0..games {
        if game.is_multiple_of(EXCHANGES_OF_A_WORLD / tries) {
            played = world(protocol, game);
        }
        let (model, server, victim) = (&mut played.0, played.1, played.2);
        let kept: Vec<Vec<u8>> = (0..tries).flat_map(|_| undisturbed(model, server, victim)).collect();
        model.tick(LATER);
        ask(model, victim);
        let before = model.acceptances().len();
        kept.iter().for_each(|answer| {
            model.send(victim, answer, &[]);
        });
        wins += u64::from(has_won(model, before));
    }
    Row { way: Way::Replay, protocol: protocol.name().to_owned(), bits, tries, games, wins }
}

/// All rows with so many bits.
fn rows_of(bits: u32, effort: Effort) -> Vec<Row> {
    let mac = Mac { keys: Keys::Pair, bound: None };
    let antp = Antp { is_separate: false };
    let nts = Nts { bound: None };
    let protocols: [&dyn Protocol; 3] = [&mac, &antp, &nts];
    let tag = Narrow { tag_bits: bits, nonce_bits: ALL_BITS };
    let nonce = Narrow { tag_bits: ALL_BITS, nonce_bits: bits };
    let mut rows = Vec::new();
    for tries in TRIES {
        for protocol in protocols {
            rows.push(narrowed(tag, || forge(protocol, bits, tries, effort)));
            rows.push(narrowed(nonce, || replay(protocol, bits, tries, effort)));
        }
    }
    rows
}

fn rows(effort: Effort) -> Vec<Row> {
    // What is narrow is so on its own thread alone.
    let mut rows: Vec<Row> = thread::scope(|scope| {
        let threads = BITS.map(|bits| scope.spawn(move || rows_of(bits, effort)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    rows.sort_by_key(|row| (row.way == Way::Replay, row.protocol.clone(), row.bits, row.tries));
    rows
}

/// What the page says before its table.
const HEAD: &str = "\
# A security bound, measured

A theorem on a time protocol bounds the probability that an adversary wins by a sum of terms: guesses at tags, nonces
that repeat, and what is assumed of primitives. With tags of 128 bits and nonces of 64 nobody will ever see one of them
at work. Here both are 8 to 16 bits wide, in the code that serves and asks in earnest (a build with the feature
`mutants`, which no release has), and the adversary plays until it has won often enough to be counted.

- *tag*: in each game the client asks once, and the adversary puts so many responses before it, an hour off, each with
  another tag. The term is q / 2^b for q tries at b bits.
- *nonce*: the adversary has kept the responses to so many requests, and ten seconds later replays all of them to the
  next request. The term is n / 2^b for n kept ones. All that a client draws to know its response by has b bits: the
  transmit timestamp, ANTP's nonce and NTS's unique identifier follow from one another.

A tag of NTS is the synthetic initialisation vector of AES-SIV, so the guesses are at responses in which nothing is
encrypted: what a wrong one would decrypt to is nobody's choice.

The terms' form is reconstructed; see [the game](manual/game.md). *Measured* is the share of games that were won, with
Wilson's interval at 99.9 %. *Expected* is what uniform tags and nonces give: for nonces a little less than the term, as
kept ones may be equal. In the picture, marks with the same term stand side by side, and where nobody won there is only
the interval. The games follow from a seed, so the figures are the same on every machine; a part of
[the night](assurance.md#narrow-tags) plays them again and compares.

![Measured advantage over the terms of the theorem](security-bound.svg)

| what is narrow | protocol | bits | tries | games | won | measured | interval | expected | term |
|---|---|--:|--:|--:|--:|--:|---|--:|--:|
";

fn percent(share: f64) -> String {
    format!("{:.4} %", share * 100.0)
}

fn page(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let (low, high) = row.interval();
        let what = if row.way == Way::Forge { "tag" } else { "nonce" };
        let Row { protocol, bits, tries, games, wins, .. } = row;
        writeln!(
            text,
            "| {what} | {protocol} | {bits} | {tries} | {games} | {wins} | {} | {} to {} | {} | {} |",
            percent(row.measured()),
            percent(low),
            percent(high),
            percent(row.expected()),
            percent(row.term())
        )
        .unwrap();
    }
    text
}

/// Decades of either axis, up to 1.
const DECADES: f64 = 5.0;

/// Where a share stands on an axis, in pixels.
type Axis<'a> = &'a dyn Fn(f64) -> f64;

/// The grid, its labels, and the line on which both are equal.
fn axes((x, y): (Axis<'_>, Axis<'_>), edge: f64) -> String {
    let mut out = String::new();
    for decade in 0..=DECADES as i32 {
        let share = 10_f64.powi(decade - DECADES as i32);
        let words = format!("10^{}", decade - DECADES as i32);
        writeln!(
            out,
            "<line class=\"g\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\"/>\
             <line class=\"g\" x1=\"{3:.1}\" y1=\"{4:.1}\" x2=\"{5:.1}\" y2=\"{4:.1}\"/>\
             <text x=\"{0:.1}\" y=\"{6:.1}\" text-anchor=\"middle\">{words}</text>\
             <text x=\"{7:.1}\" y=\"{8:.1}\" text-anchor=\"end\">{words}</text>",
            x(share),
            y(1.0),
            y(1e-5),
            x(1e-5),
            y(share),
            x(1.0),
            y(1e-5) + 20.0,
            edge - 8.0,
            y(share) + 4.0
        )
        .unwrap();
    }
    writeln!(
        out,
        "<line class=\"l\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">term of the theorem</text>\n\
         <text x=\"{edge}\" y=\"20\">share of games won</text>",
        x(1e-5),
        y(1e-5),
        x(1.0),
        y(1.0),
        x(0.003),
        y(1e-5) + 44.0
    )
    .unwrap();
    out
}

/// Measured shares over terms, both axes logarithmic, with intervals and the line on which both are equal.
fn picture(rows: &[Row]) -> String {
    const SIDE: f64 = 480.0;
    const EDGE: f64 = 70.0;
    const STYLE: &str = "svg{font:13px system-ui,sans-serif;background:#fff;color:#1b1b1b}text{fill:currentColor}\
        .g{stroke:#8a8a8a55}.l{stroke:currentColor}.a{stroke:#1b5e9e;fill:#1b5e9e}.b{stroke:#b3261e;fill:#b3261e}\
        .c{stroke:#2e7d32;fill:#2e7d32}.h{fill:#fff}\
        @media(prefers-color-scheme:dark){svg{background:#161616;color:#e8e8e8}.a{stroke:#7db8f0;fill:#7db8f0}\
        .b{stroke:#ff8a80;fill:#ff8a80}.c{stroke:#81c784;fill:#81c784}.h{fill:#161616}}";
    let place = |share: f64| (share.max(1e-5).log10() + DECADES) / DECADES * SIDE;
    let (x, y) = (|share: f64| EDGE + place(share), |share: f64| EDGE / 2.0 + SIDE - place(share));
    let (width, height) = (EDGE + SIDE + 20.0, EDGE / 2.0 + SIDE + 60.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <title>Share of games that the adversary won, over the term of the theorem: all lie on the line where both \
         are equal, or just below it</title>\n<style>{STYLE}</style>\n"
    );
    out += &axes((&x, &y), EDGE);
    let ways = [(Way::Forge, "guesses at the tag", ""), (Way::Replay, "nonces that repeat", " h")];
    let protocols = [("mac", "a"), ("antp", "b"), ("nts", "c")];
    let kinds = ways.into_iter().flat_map(|way| protocols.map(|protocol| (way, protocol)));
    for (number, ((way, what, hollow), (protocol, class))) in kinds.enumerate() {
        let at = y(1.0) + 24.0 + 20.0 * number as f64;
        writeln!(
            out,
            "<circle class=\"{class}{hollow}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/><text x=\"{:.1}\" \
             y=\"{at:.1}\">{protocol}, {what}</text>",
            EDGE + 20.0,
            at - 4.0,
            EDGE + 32.0
        )
        .unwrap();
        for row in rows.iter().filter(|row| row.way == way && row.protocol == protocol) {
            // Side by side where terms are equal.
            let at = x(row.term()) + (number as f64 - 2.5) * 4.5;
            let (low, high) = row.interval();
            // Without a win there is nothing to draw on this axis but what may be.
            let mark = match row.wins {
                0 => String::new(),
                _ => format!("<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3\"/>", y(row.measured())),
            };
            writeln!(
                out,
                "<g class=\"{class}{hollow}\"><title>{protocol}, {what}: {} bits, {} tries: {} of {} games</title>\
                 <line x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>{mark}</g>",
                row.bits,
                row.tries,
                row.wins,
                row.games,
                y(low),
                y(high)
            )
            .unwrap();
        }
    }
    out + "</svg>\n"
}

/// Plays, and compares with what is expected.
fn played(effort: Effort) -> Vec<Row> {
    let rows = rows(effort);
    for row in &rows {
        let (low, high) = row.interval();
        let Row { way, protocol, bits, tries, .. } = row;
        let told = format!("{way:?} {protocol} {bits} bits, {tries} tries: {low} to {high}");
        assert!((low..=high).contains(&row.expected()), "{told}, expected {}", row.expected());
        assert!(low <= row.term(), "{told}, above the term {}", row.term());
    }
    rows
}

#[test]
fn advantage_is_what_the_terms_of_the_theorem_say() {
    let rows = played(SMALL);
    assert!(rows.iter().filter(|row| row.wins > 10).count() > 8);
}

#[test]
#[ignore = "takes minutes; a part of the night"]
fn page_has_what_is_measured() {
    let rows = played(LARGE);
    let games: u64 = rows.iter().map(|row| row.games).sum();
    println!("assurance: narrow-games = {games} games");
    for (path, made) in [(PAGE, page(&rows)), (PICTURE, picture(&rows))] {
        if std::env::var_os("AUTHENTICK_UPDATE_GOLDEN").is_some() {
            fs::write(path, made).unwrap();
        } else {
            assert_eq!(fs::read_to_string(path).unwrap(), made, "{path} is not what was measured");
        }
    }
}
