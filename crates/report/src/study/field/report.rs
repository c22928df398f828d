//! The report on the study: three sentences and one picture first.

use super::figures::Basis;
use super::tables::{self, share};
use super::{Cell, FieldRecord, Scheme, Server, Trial};
use crate::render::{Block, Group, IntervalLine, Intervals, Kind, Layout, Marker, Report, Section};
use crate::stored::Stored;
use crate::units::{joined, listed, microseconds, plural, rate, ratio};

const NOTHING: &str = "Nothing was measured yet that could be compared with a plain rate.";
const TITLE: &str = "What authentication costs, by scheme and server";

/// The report. The record has all that the plan says.
#[must_use]
pub fn report(record: &FieldRecord) -> Report {
    Report::new(TITLE, Layout::Nested, sections(record))
}

/// What follows, the picture, the figures, and how they were measured.
#[must_use]
pub fn sections(record: &FieldRecord) -> Vec<Section> {
    let mut first = Section::default();
    first.add(Block::findings(findings(record)));
    if let Some(picture) = picture(record) {
        first.add(picture);
    }
    let mut sections =
        vec![first, Section::of("Each scheme at each server", [Block::Table(tables::costs(record))])];
    let more =
        [("Key exchanges", tables::exchanges(record)), ("Latency and error", tables::latencies(record))];
    sections
        .extend(more.into_iter().filter_map(|(name, table)| Some(Section::of(name, [Block::Table(table?)]))));
    let mut how = Section::new("How it was measured");
    let mut said = method(record).into_iter();
    how.say_all(said.next());
    how.fold("Servers, trials and what is compared", said);
    sections.push(how);
    let lacks = tables::lacks(record);
    if !lacks.is_empty() {
        sections.push(Section::of("What servers do not have", lacks.into_iter().map(Block::paragraph)));
    }
    sections
}

/// Three sentences and the picture, for a page on which this study is not alone.
pub(in crate::study) fn headlines(record: &FieldRecord) -> (Vec<String>, Option<Block>) {
    let sentences = [kept(record, Server::Authentick), nts(record), exchange(record)];
    let mut sentences: Vec<String> = sentences.into_iter().flatten().collect();
    if sentences.is_empty() {
        sentences.push(NOTHING.to_owned());
    }
    (sentences, picture(record))
}

/// The sentences that stand first.
fn findings(record: &FieldRecord) -> Vec<String> {
    let mut sentences: Vec<String> =
        record.servers().into_iter().filter_map(|server| kept(record, server)).collect();
    sentences.extend(nts(record));
    sentences.extend(exchange(record));
    sentences.extend(amplification(record));
    if sentences.is_empty() {
        sentences.push(NOTHING.to_owned());
    }
    sentences
}

/// What a server keeps of its plain rate under the main schemes.
fn kept(record: &FieldRecord, server: Server) -> Option<String> {
    let schemes = [Scheme::Cmac128, Scheme::Antp, Scheme::Nts15, Scheme::Nts30];
    let parts = schemes.into_iter().filter_map(|scheme| {
        let estimate = record.shares(Cell { server, scheme }).estimate()?;
        Some(format!("{} under {}", share(estimate), scheme.name()))
    });
    let parts: Vec<String> = parts.collect();
    let plain = Cell { server, scheme: Scheme::Plain };
    if record.basis(plain) == Basis::Answers {
        let plain = record.estimate(plain, |trial| Some(trial.answered_rps))?;
        return (!parts.is_empty()).then(|| {
            format!(
                "{} keeps {} of the {} plain requests that it answered in a second. Its processor time is unknown, so \
                 these are shares of what was answered, bounded by whatever limited that.",
                record.title(server),
                listed(parts),
                rate(plain.median)
            )
        });
    }
    let plain = record.estimate(plain, Trial::core_rps)?;
    (!parts.is_empty()).then(|| {
        format!(
            "{} keeps {} of its plain rate, which is {} for a second of processor time.",
            record.title(server),
            listed(parts),
            rate(plain.median)
        )
    })
}

/// How servers compare under NTS with the AEAD that most of them have.
fn nts(record: &FieldRecord) -> Option<String> {
    let rates = record.servers().into_iter().filter_map(|server| {
        let estimate = record.estimate(Cell { server, scheme: Scheme::Nts15 }, Trial::core_rps)?;
        Some((server, estimate.median))
    });
    let rates: Vec<(Server, f64)> = rates.collect();
    let (ours, others) = rates.split_first().filter(|(first, _)| first.0 == Server::Authentick)?;
    let parts = others.iter().map(|(server, rps)| {
        format!("{} {} ({} to one)", record.title(*server), rate(*rps), ratio(ours.1 / rps))
    });
    let others = joined(parts, ", ")?;
    Some(format!(
        "Under {} a second of processor time is worth {} answers to authentick; to others: {others}.",
        Scheme::Nts15.name(),
        rate(ours.1)
    ))
}

/// What a key exchange costs, beside others.
fn exchange(record: &FieldRecord) -> Option<String> {
    let of = |server: Server| record.exchange(server, |trial| trial.cpu_us);
    let ours = of(Server::Authentick)?;
    let others = record.servers().into_iter().filter(|server| *server != Server::Authentick);
    let parts = others.filter_map(|server| {
        let (us, multiple) = of(server).zip(record.exchange_ratio(server))?;
        let (title, us) = (record.title(server), microseconds(us.median));
        Some(format!("{title} {us} ({} times)", ratio(multiple.median)))
    });
    let others = joined(parts, ", ").map_or_else(String::new, |others| format!("; others: {others}"));
    Some(format!(
        "A key exchange costs authentick {} of processor time, the kernel\u{2019}s part included{others}.",
        microseconds(ours.median)
    ))
}

/// How long answers are beside requests.
fn amplification(record: &FieldRecord) -> Option<String> {
    let ours = record.amplification(Server::Authentick)?;
    let others = record.servers().into_iter().filter(|server| *server != Server::Authentick);
    let parts = others.filter_map(|server| {
        Some(format!("{} {}", record.title(server), ratio(record.amplification(server)?)))
    });
    let others =
        joined(parts, ", ").map_or_else(String::new, |others| format!("; the most of others: {others}"));
    let times = ratio(ours);
    Some(match ours <= 1.0 {
        true => format!(
            "Nobody can amplify with authentick: under every scheme its largest answer has {times} times the octets of \
             the largest request, or fewer{others}."
        ),
        false => format!(
            "Answers of authentick amplify: under one scheme the largest has {times} times the octets of the largest \
             request{others}."
        ),
    })
}

/// What is known of servers that somebody else runs.
fn given(record: &FieldRecord) -> Option<String> {
    let places = record.settings.given.iter().map(|given| {
        let keys = given.ke_port.map_or_else(String::new, |port| format!(", keys at port {port}"));
        format!("{} at {}{keys}", given.name, given.at(given.port))
    });
    let places: Vec<String> = places.collect();
    (!places.is_empty()).then(|| {
        format!(
            "Somebody else runs {}. What is said here of processors and limits of rates is not said of that: where it \
             runs, beside what, behind which path, and whom it refuses is not in the hands of this study.",
            listed(places)
        )
    })
}

/// What was measured, how, and on what.
fn method(record: &FieldRecord) -> Vec<String> {
    let settings = &record.settings;
    let mut sentences = vec![
        format!("On {}", record.provenance().made()),
        format!(
            "Each server has one processor, and the generator another; requests go over loopback. In each of {}, every \
             server is asked under every scheme, one after the other, for {} s, with {} requests in flight: as soon as \
             one is answered, its client sends the next. Clients are real ones, with keys, cookies and sessions of \
             their own, and check every answer.",
            plural(u64::from(settings.rounds), "round"),
            settings.trial_seconds,
            settings.window
        ),
        "What is compared is how much a server answers for a second of its own processor time, as the kernel \
         counts it, so that other work on the machine has little effect. On a machine that does nothing else, a \
         server with one processor answers so much a second. Shares are taken within a round, of the same \
         server\u{2019}s plain rate."
            .to_owned(),
    ];
    sentences.extend(given(record));
    if !record.exchanges.is_empty() {
        sentences.push(format!(
            "Key exchanges follow each other in the same way, with {} on their way: each has a connection of its own, \
             and is over when its cookies are there.",
            settings.exchange_window
        ));
    }
    if !record.latencies.is_empty() {
        sentences.push(format!(
            "Latency is taken in {}, for {} s, at 50 and 90 % of what the same server had answered under the same \
             scheme in that round.",
            plural(u64::from(settings.latency_rounds), "round"),
            settings.latency_seconds
        ));
    }
    if !record.titles.is_empty() {
        sentences.push(format!("Servers: {}.", listed(record.titles.values().cloned())));
    }
    if settings.quick {
        sentences.push(
            "This is a short study (--quick): few rounds and short trials. Differences of some percent say nothing."
                .to_owned(),
        );
    }
    sentences.extend(tables::limits(record));
    sentences.extend(record.remarks.iter().cloned());
    sentences
}

/// How a server is drawn; `index`: its place among those of a table. No two of the first twelve are drawn alike.
const fn mark(server: Server, index: usize) -> (Marker, usize) {
    const GIVEN: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Diamond, Marker::Triangle];
    match server {
        Server::Authentick => (Marker::Circle, 0),
        Server::Chrony => (Marker::Square, 1),
        Server::NtpdRs => (Marker::Diamond, 2),
        Server::FacebookTime => (Marker::Triangle, 3),
        // Colours come again after six, and marks after four, one further each time.
        Server::Given(_) => (GIVEN[(index + 1) % GIVEN.len()], index),
    }
}

/// Shares of the plain rate, scheme after scheme.
fn picture(record: &FieldRecord) -> Option<Block> {
    let schemes = Scheme::ALL.into_iter().filter(|scheme| *scheme != Scheme::Plain);
    let groups: Vec<Group> = schemes
        .map(|scheme| Group { name: scheme.name().to_owned(), lines: lines(record, scheme) })
        .filter(|group| !group.lines.is_empty())
        .collect();
    let said: Vec<String> =
        groups.iter().flat_map(|group| &group.lines).map(|line| line.title.clone()).collect();
    if said.is_empty() {
        return None;
    }
    let kinds = record.settings.all_servers().enumerate().map(|(index, server)| {
        let (marker, colour) = mark(server, index);
        Kind { name: server.name().to_owned(), marker, colour }
    });
    let drawing = Intervals {
        label: said.join(". "),
        along: "answers for a second of processor time, of the same server\u{2019}s to plain requests",
        one: "the plain rate",
        void: "a trial that does not count",
        kinds: kinds.collect(),
        groups,
    };
    let caption = "The further right, the less authentication costs. Small dots are single rounds, large marks their \
                   medians, with intervals of 95 %. A mark says its figures when it is pointed at; the table has all.";
    Some(Block::figure(drawing, caption))
}

fn lines(record: &FieldRecord, scheme: Scheme) -> Vec<IntervalLine> {
    let line = |(kind, server): (usize, Server)| {
        let shares = record.shares(Cell { server, scheme });
        let rounds = shares.counted.len() + shares.void.len();
        let figures = match shares.estimate() {
            Some(estimate) => {
                let basis = match record.basis(Cell { server, scheme }) {
                    Basis::ProcessorTime => "",
                    Basis::Answers => " by answers",
                };
                format!("{} of the plain rate{basis}, in {}", share(estimate), plural(rounds as u64, "round"))
            }
            None => "no round counts".to_owned(),
        };
        let title = format!("{} under {}: {figures}", server.name(), scheme.name());
        (rounds > 0).then_some(IntervalLine { kind, title, counted: shares.counted, void: shares.void })
    };
    record.settings.all_servers().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::page::assert_escaped;
    use crate::study::field::tests::{record, record_with_given};

    #[test]
    fn page_is_whole_and_escapes_what_comes_from_the_record() {
        let mut record = record();
        record.remarks.push("<script>".to_owned());
        record.titles.insert(Server::Chrony, "<i>".to_owned());
        record.trials[1].why_invalid = Some("<b>".to_owned());
        let page = report(&record).page();
        assert_escaped(&page);
        assert_eq!(page.matches("<figure>").count(), 1);
        assert!(
            page.contains(
                "chrony under NTS, AEAD 15: 62 % (62 to 62) of the plain rate, in 3 rounds</title>"
            )
        );
        assert!(page.contains("a trial that does not count</span>"));
    }

    #[test]
    fn text_says_what_follows_first() {
        let text = report(&record()).text();
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "authentick 0.1.0 keeps 96 % (96 to 96) under AES-128-CMAC, 93 % (93 to 93) under ANTP and 91 % (91 to 91) \
             under NTS, AEAD 15 of its plain rate",
            "chrony 4.3 125,000 (1.82 to one)",
            "A key exchange costs authentick 100.0 us of processor time, the kernel\u{2019}s part included; others: \
             chrony 4.3 250.0 us (2.50 times).",
            "with 16 on their way",
            "Latency is taken in 1 round, for 1 s, at 50 and 90 %",
            "This is a short study (--quick)",
            "Servers: authentick 0.1.0 and chrony 4.3.",
            "one after the other, for 1 s, with 64 requests in flight",
            "chrony has no ANTP, as nobody but us: ANTP.",
            "Servers have the first processor.",
        ] {
            assert!(whole.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.trim_end() == line));
    }

    #[test]
    fn servers_of_somebody_else_are_told_with_what_is_not_known() {
        let (record, _) = record_with_given();
        let report = report(&record);
        let whole = report.text().split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "cfnts at 198.18.0.1:123 keeps 62 % (62 to 62) under NTS, AEAD 15 of the 190,000 plain requests",
            "Its processor time is unknown",
            "Somebody else runs cfnts at 198.18.0.1:123, keys at port 4460.",
        ] {
            assert!(whole.contains(part), "{part}\n{whole}");
        }
        let page = report.page();
        assert!(
            page.contains(
                "cfnts under NTS, AEAD 15: 62 % (62 to 62) of the plain rate by answers, in 3 rounds"
            )
        );
    }

    #[test]
    fn answers_that_are_longer_than_requests_are_told() {
        let mut record = record();
        let said = |record: &FieldRecord| amplification(record).unwrap();
        assert_eq!(
            said(&record),
            "Nobody can amplify with authentick: under every scheme its largest answer has 1.00 times the octets of \
             the largest request, or fewer; the most of others: chrony 4.3 1.00."
        );
        record.trials.iter_mut().for_each(|trial| trial.response_size += 48);
        assert!(said(&record).starts_with("Answers of authentick amplify"), "{}", said(&record));
        record.trials.iter_mut().for_each(|trial| trial.response_size = 0);
        assert_eq!(amplification(&record), None);
    }

    #[test]
    fn no_two_servers_are_drawn_alike() {
        use crate::study::field::GIVEN_COUNT_MAX;
        let given = Server::Given("cfnts".parse().unwrap());
        let first = Server::BUILT_IN.len();
        let all = Server::BUILT_IN.into_iter().chain([given; GIVEN_COUNT_MAX]).enumerate();
        let marks: Vec<_> = all.map(|(index, server)| mark(server, index)).collect();
        for (index, (marker, colour)) in marks.iter().enumerate().skip(first) {
            let is_like = |other: &(Marker, usize)| other.0 == *marker && other.1 % 6 == colour % 6;
            assert!(!marks[..index].iter().any(is_like), "{index}");
        }
    }

    #[test]
    fn nothing_measured_is_said_and_not_drawn() {
        let mut record = record();
        record.trials.clear();
        record.exchanges.clear();
        record.latencies.clear();
        let report = report(&record);
        assert!(report.text().contains("Nothing was measured yet"));
        assert!(!report.page().contains("<figure>"));
        record.titles.clear();
        assert_eq!(record.title(Server::FacebookTime), "facebook/time");
    }

    #[test]
    fn record_cannot_steer_the_terminal() {
        let mut record = record();
        record.host.cpu = "\u{1b}[2J".to_owned();
        record.titles.insert(Server::Chrony, "\u{9b}31m".to_owned());
        record.trials[0].why_invalid = Some("\r".to_owned());
        assert!(report(&record).text().chars().all(|c| c == '\n' || !c.is_control()));
    }
}
