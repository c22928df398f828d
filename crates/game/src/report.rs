//! Everything that is played here as one report: verdicts, what an adversary without a plan finds, and games as
//! sequence diagrams.

use std::fmt::Write as _;

use authentick_report::{Composition, Report};
use authentick_wire::time::NtpSpan;

use crate::mac::limits::MESSAGES_LOG2;
use crate::mac::{Program, Results};
use crate::protocol::{self, E, Family, Protocol};
use crate::schedule::{Search, Searches, Wander};
use crate::strategy::{self, Played, Table};
use crate::trace::{self, Trace};
use crate::verdict::Verdict;

/// Messages that an adversary who tries everything looks at.
const ROOM: usize = 6;

/// The end of the names of protocols with a bound whose twin has none.
const BOUNDED: &str = "-e";

/// Lines of a game that is shown step by step; what is longer is only named.
const LINES_MAX: usize = 60;

/// All that is played, and what came of it.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Every strategy against every protocol.
    pub table: Table,
    /// Every schedule up to a number of moves.
    pub searches: Searches,
    /// Random schedules.
    pub wanders: Searches,
    /// The programs on message authentication codes that were played.
    pub programs: Vec<Program>,
    /// What came of them.
    pub macs: Results,
}

impl Whole {
    /// How often [`Whole::play`] says that something is through.
    pub const PARTS: u64 = 4;

    /// Plays all strategies, every schedule of up to `depth` moves, `random` ones against each protocol, and
    /// `programs`. Says when a part is through.
    #[must_use]
    pub fn play(seed: u64, depth: usize, random: u64, programs: &[Program], through: impl Fn()) -> Self {
        let protocols = protocol::all();
        let table = Table::play(&strategy::all(), &protocols, seed, || {});
        through();
        let searches = Searches::new(seed, depth, ROOM, None).play(&protocols, || {});
        through();
        let wanders = Searches::new(seed, depth, ROOM, Some(random)).play(&protocols, || {});
        through();
        let macs = Results::play(programs, seed, &MESSAGES_LOG2, || {});
        through();
        Whole { table, searches, wanders, programs: programs.to_vec(), macs }
    }

    /// Whether all of it came out as the theory says.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        let Whole { table, searches, wanders, programs: _, macs } = self;
        table.as_expected && searches.is_as_expected() && wanders.is_as_expected() && macs.as_expected
    }

    /// The report.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut made = Composition::new("An adversary against time protocols");
        made.find([self.found_of_games(), self.found_of_safe(), self.found_of_errors()]);
        made.say(&format!(
            "Seed {}. The adversary owns the network and the clocks, and its victims are the client and the server \
             that ask and serve in earnest. The rules are those of Dowling, Stebila and Zaverucha, \"Authenticated \
             Network Time Synchronization\" (USENIX Security 2016), section 5.1; the definitions of its goals are \
             reconstructed. E is {} s. The same command makes the same report on any machine.",
            self.table.seed,
            seconds(E)
        ));
        self.verdicts(&mut made);
        words(&mut made);
        self.games(&mut made);
        self.schedules(&mut made);
        made.section("Message authentication codes");
        made.say("What the drafts that led to RFC 8573 argue, as programs.");
        for (program, played) in self.programs.iter().zip(&self.macs.programs) {
            made.show(program.says(), None, format!("{played}\n"));
        }
        made.section("What is not here");
        made.say(
            "The same adversary over real sockets against chrony, ntpd-rs and facebook/time (docs/others.md), and tags \
             and nonces made so narrow that an adversary wins as often as the theorem allows (docs/security-bound.md), \
             need programs of others and a build of their own.",
        );
        made.report()
    }

    fn found_of_games(&self) -> String {
        let Table { protocols, rows, .. } = &self.table;
        let (games, wrong) = (
            rows.iter().flatten().count(),
            rows.iter().flatten().filter(|played| !played.is_as_expected()).count(),
        );
        let ended = match wrong {
            0 => "each ended as the theory says".to_owned(),
            1 => "one did not end as the theory says, which is marked".to_owned(),
            wrong => format!("{wrong} did not end as the theory says, which are marked"),
        };
        format!("{} strategies against {} protocols: of {games} games {ended}.", rows.len(), protocols.len())
    }

    fn found_of_safe(&self) -> String {
        let Searches { depth, searches, .. } = &self.searches;
        let safe: Vec<String> = protocol::all()
            .iter()
            .filter(|protocol| is_safe(protocol.as_ref()))
            .map(|protocol| protocol.name().to_owned())
            .collect();
        let of_safe = |name: &String| safe.contains(name);
        let won = self.table.rows.iter().flatten().filter(|played| of_safe(&played.protocol));
        let won = won.filter(|played| played.verdict.is_win()).count();
        let of_search = || searches.iter().filter(|search| of_safe(&search.protocol));
        let found: usize = of_search().map(|search| search.attacks.len()).sum();
        let worlds: u64 = of_search().map(|search| search.worlds).sum();
        let of_wander = || self.wanders.wanders.iter().filter(|wander| of_safe(&wander.protocol));
        let (schedules, wins) = of_wander()
            .fold((0, 0), |(schedules, wins), wander| (schedules + wander.schedules, wins + wander.wins));
        let who = "Against clients with keys of their own and a bound on the round trip";
        match (won, found, wins) {
            (0, 0, 0) => format!(
                "{who} nobody wins: no strategy, no schedule of up to {depth} moves ({worlds} worlds), and none of \
                 {schedules} random schedules."
            ),
            _ => format!(
                "{who} an adversary won: {won} games of strategies, {found} ways in schedules of up to {depth} moves, \
                 and {wins} times in {schedules} random schedules."
            ),
        }
    }

    fn found_of_errors(&self) -> String {
        let bounded: Vec<String> = protocol::all()
            .iter()
            .filter(|protocol| protocol.bound().is_some() && protocol.family() != Family::Plain)
            .map(|protocol| protocol.name().to_owned())
            .collect();
        let of_games = self.table.rows.iter().flatten().filter(|played| bounded.contains(&played.protocol));
        // What is no win and no help of a secret: the server said it.
        let of_games = of_games.filter(|played| played.verdict == Verdict::Bound);
        let of_games = of_games.flat_map(|played| &played.believed).filter_map(|one| one.error);
        let of_random = self.wanders.wanders.iter().filter(|wander| bounded.contains(&wander.protocol));
        let of_random = of_random.map(|wander| NtpSpan::from_bits(wander.error_max));
        let largest = of_games.chain(of_random).max().unwrap_or(NtpSpan::ZERO);
        format!(
            "The largest error of a client with a bound, if its server has said what it believed, was {} s; half \
             of E is {} s.",
            seconds(largest),
            seconds(NtpSpan::from_bits(E.to_bits() / 2))
        )
    }

    fn verdicts(&self, made: &mut Composition) {
        let Table { protocols, rows, .. } = &self.table;
        made.section("Strategies against protocols");
        made.say(
            "What came of each. A verdict that was not expected has an exclamation mark; a dash is where a strategy \
             has nothing to attack.",
        );
        let columns: Vec<(&str, bool)> = std::iter::once("strategy")
            .chain(protocols.iter().map(String::as_str))
            .map(|name| (name, true))
            .collect();
        let cells = |row: &Vec<Played>| {
            let name = row.first().map_or("", |played| played.strategy).to_owned();
            let of = |protocol: &String| {
                row.iter().find(|played| played.protocol == *protocol).map_or("-".to_owned(), marked)
            };
            std::iter::once(name).chain(protocols.iter().map(of)).collect()
        };
        let is_warning = |word: &str| word.starts_with("WIN") || word.ends_with('!');
        made.table("Verdicts", &columns, rows.iter().map(cells).collect(), is_warning);
    }

    /// Each strategy, with the game that it does best in and, if there is one, a game that it does worse in.
    fn games(&self, made: &mut Composition) {
        made.section("Strategies, one by one");
        made.say(
            "Each with the protocol that it does most harm to, and one that withstands it, if any does. Arrows that \
             are dashed are messages that the adversary made or changed.",
        );
        for row in &self.table.rows {
            let Some(first) = row.first() else { continue };
            let says = strategy::named(first.strategy).map_or("", |strategy| strategy.says);
            made.say_of(first.strategy, &format!("{}. {says}", first.title));
            for played in shown(row) {
                let Some(protocol) = protocol::named(&played.protocol) else { continue };
                let trace = Trace::of(played, protocol.as_ref());
                let words = trace.to_string();
                let name = format!("{} against {}: {}", played.strategy, played.protocol, marked(played));
                if words.lines().count() <= LINES_MAX {
                    made.show(&name, Some(trace::inline(&trace)), words);
                }
            }
        }
    }

    fn schedules(&self, made: &mut Composition) {
        let Searches { depth, room, searches, .. } = &self.searches;
        made.section("Without a strategy");
        made.say(&format!(
            "Every schedule of up to {depth} moves, of two clients, with up to {room} messages: a client asks; the \
             server or a client gets a message, as it is or with one change; E or a little more passes. Worlds that \
             differ only in the order of events count once."
        ));
        let cells = |search: &Search| {
            let Search { protocol, start, worlds, moves, bound, attacks, .. } = search;
            vec![
                protocol.clone(),
                start.word().to_owned(),
                worlds.to_string(),
                moves.to_string(),
                bound.to_string(),
                attacks.len().to_string(),
            ]
        };
        let columns = [
            ("protocol", true),
            ("clients begin with", true),
            ("worlds", false),
            ("moves", false),
            ("believed within bounds", false),
            ("ways to win", false),
        ];
        made.table("Every schedule", &columns, searches.iter().map(cells).collect(), |_| false);
        for search in searches.iter().filter(|search| !search.is_safe()) {
            let words = search.attacks.iter().fold(String::new(), |mut words, attack| {
                let moves = attack.moves.join("; ");
                writeln!(words, "{:8}  {}: {moves}", attack.verdict, attack.class)
                    .expect("writing to a string cannot fail");
                words
            });
            made.show(
                &format!("Ways to win against {}, the shortest of each kind", search.protocol),
                None,
                words,
            );
        }
        made.say("Random schedules of twelve moves, with delays of any length up to half more than E:");
        let cells = |wander: &Wander| {
            let Wander { protocol, schedules, believed, wins, error_max, share_max, .. } = wander;
            vec![
                protocol.clone(),
                schedules.to_string(),
                believed.to_string(),
                wins.to_string(),
                format!("{:.6}", NtpSpan::from_bits(*error_max).as_nanos() as f64 / 1e9),
                format!("{:.3}", *share_max as f64 / 1000.0),
            ]
        };
        let columns = [
            ("protocol", true),
            ("schedules", false),
            ("believed", false),
            ("won", false),
            ("largest error, s", false),
            ("part of its round trip", false),
        ];
        made.table("Random schedules", &columns, self.wanders.wanders.iter().map(cells).collect(), |_| false);
    }
}

/// What verdicts and protocols are called.
fn words(made: &mut Composition) {
    made.section("What the words mean");
    made.define(Verdict::ALL.iter().map(|verdict| (verdict.word(), verdict.says())));
    let protocols = protocol::all();
    let named = protocols.iter().map(|protocol| (protocol.name(), protocol.says()));
    made.define(named.filter(|(name, _)| !name.ends_with(BOUNDED)));
    made.say(
        "A protocol whose name ends in -e is the same with clients that reject a round trip of more than E. Those of \
         ANTP always do.",
    );
}

/// Whether nobody is to win: every client has a key of its own, and a bound.
fn is_safe(protocol: &dyn Protocol) -> bool {
    let has_own_key =
        matches!(protocol.family(), Family::PairKey | Family::Nts | Family::Antp | Family::AntpSeparate);
    has_own_key && protocol.bound().is_some()
}

/// The game in which a strategy does most harm, and the last one in which it does least, if that is another verdict.
fn shown(row: &[Played]) -> Vec<&Played> {
    let harmed = row.iter().min_by_key(|played| played.verdict);
    let withstood = row.iter().max_by_key(|played| played.verdict);
    let withstood = withstood.filter(|one| harmed.is_some_and(|other| other.verdict != one.verdict));
    harmed.into_iter().chain(withstood).collect()
}

/// A verdict, with an exclamation mark if it was not expected.
fn marked(played: &Played) -> String {
    format!("{}{}", played.verdict, if played.is_as_expected() { "" } else { "!" })
}

/// Seconds to the microsecond, without zeros at the end.
fn seconds(span: NtpSpan) -> String {
    let shown = format!("{:.6}", span.as_nanos() as f64 / 1e9);
    shown.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that are soon through.
    const PROGRAMS: [Program; 2] = [Program::GmacNonce, Program::Limits];

    #[test]
    fn report_has_every_verdict_and_a_picture_of_what_comes_of_a_strategy() {
        let play = || Whole::play(1, 1, 20, &PROGRAMS, || {});
        let whole = play();
        assert!(whole.is_as_expected());
        let (text, page) = (whole.report().text(), whole.report().page());
        assert!(text.contains("each ended as the theory says") && text.contains("nobody wins"), "{text}");
        for strategy in strategy::all() {
            assert!(text.contains(strategy.id) && page.contains(strategy.id), "{}", strategy.id);
        }
        assert!(page.contains("replay against plain: WIN-AUTH"), "{}", page.len());
        assert!(page.matches("<svg class=\"sequence\"").count() > 40);
        assert!(page.len() < 2_000_000, "{}", page.len());
        assert!(page.contains(Program::GmacNonce.says()) && !page.contains(Program::Others.says()));
        assert_eq!(page, play().report().page());
    }

    #[test]
    fn what_went_wrong_is_said() {
        let mut whole = Whole::play(1, 1, 1, &PROGRAMS, || {});
        let played = whole.table.rows.iter_mut().flatten().find(|played| played.protocol == "nts-e").unwrap();
        played.verdict = Verdict::WinAuthentication;
        whole.table.as_expected = false;
        whole.wanders.wanders.iter_mut().for_each(|wander| wander.wins = 1);
        assert!(!whole.is_as_expected());
        let text = whole.report().text();
        assert!(text.contains("one did not end as the theory says") && text.contains("WIN-AUTH!"), "{text}");
        assert!(text.contains("an adversary won: 1 games of strategies"), "{text}");
    }
}
