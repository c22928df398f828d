//! A run as one HTML page that needs nothing else: style and charts stand in it, there is no script.
//!
//! Every text that comes from a record goes through `Escaped`; the page also forbids the browser to load or run
//! anything, should that fail. Colours follow the reader's preference for light or dark.

use crate::page::{Escaped, Page, STYLE, cell};
use crate::plot::{Distribution, NARROW, WIDE, Words, cumulative, swatch};
use crate::run::{AntpPhases, KeyExchange, RunRecord, SchemeRun};
use crate::summary::{SchemeSummary, Times, summarise};
use crate::table::{added, delay};
use crate::units::{signed_share, signed_time, time, typeset, utc};

const PLOT: Words = Words {
    label: "Cumulative distribution of whole exchanges, by scheme; the table below has its percentiles",
    share_of: "exchanges",
    time: "whole exchange",
};
const TITLE: &str = "What authenticated time costs";

/// The page for a run.
#[must_use]
pub fn page(record: &RunRecord) -> String {
    let summaries = summarise(record);
    let mut page = Page::new(TITLE, STYLE);
    page.opening(record);
    page.findings(record, &summaries);
    page.summary(&summaries);
    page.distribution(record);
    page.percentiles(&summaries);
    page.key_exchanges(record);
    page.antp_phases(record);
    page.failures(record);
    page.notes(record);
    page.finish()
}

impl Page {
    /// What was measured, and on what.
    fn opening(&mut self, record: &RunRecord) {
        let path = Escaped(&record.path);
        let counts: Vec<String> = record.schemes.iter().map(request_count).collect();
        match counts.split_last() {
            None => self.add(format_args!("<p>No exchange was made over the path <strong>{path}</strong>.")),
            Some((last, others)) => {
                let and = if others.is_empty() { "" } else { " and " };
                self.add(format_args!(
                    "<p>A client asked a server for the time over the path <strong>{path}</strong>, {}{and}{last}.",
                    others.join(", ")
                ));
            }
        }
        let host = &record.host;
        self.add(format_args!(
            " The run started on <span class=\"unbroken\">{}</span> with the command <code>{}</code> \
             (authentick {}, commit <code>{}</code>) on {}, {} {}, {}.</p>\n",
            utc(record.started_unix_s),
            Escaped(&record.command),
            Escaped(&record.version),
            Escaped(&record.commit),
            Escaped(&host.cpu),
            host.cpu_count,
            if host.cpu_count == 1 { "processor" } else { "processors" },
            Escaped(&host.kernel),
        ));
    }

    /// The extra time of each scheme, in words.
    fn findings(&mut self, record: &RunRecord, summaries: &[SchemeSummary<'_>]) {
        if summaries.iter().all(|summary| summary.added.is_none()) {
            return;
        }
        self.add(format_args!("<ul class=\"findings\">\n"));
        for (run, summary) in record.schemes.iter().zip(summaries) {
            let Some(added) = summary.added else { continue };
            let time = typeset(&time(added.ns.unsigned_abs()));
            let comparison = match added.ns.signum() {
                0 => "as long as".to_owned(),
                1 => format!("<strong>{time} more</strong> than"),
                _ => format!("<strong>{time} less</strong> than"),
            };
            let share = added.ratio.map_or_else(String::new, |ratio| format!(": {}", signed_share(ratio)));
            self.add(format_args!(
                "<li>The median exchange of <strong>{}</strong> takes {comparison} that of plain NTP{}.</li>\n",
                Escaped(&run.label()),
                typeset(&share),
            ));
        }
        self.add(format_args!("</ul>\n"));
    }

    fn summary(&mut self, summaries: &[SchemeSummary<'_>]) {
        if summaries.is_empty() {
            return;
        }
        self.heading("Schemes side by side");
        let headings = [
            "Scheme",
            "Authentication",
            "Exchanges",
            "Failed",
            "Offset, median",
            "Delay, median",
            "Whole exchange, median",
            "Whole exchange, p99",
            "Added by authentication",
        ];
        let rows = summaries.iter().map(|summary| {
            let figure = |format: fn(&Times) -> String| summary.times.as_ref().map(format);
            let figures = [
                figure(|times| signed_time(times.offset_median_ns)),
                figure(delay),
                figure(|times| time(times.whole_median_ns)),
                figure(|times| time(times.whole_p99_ns)),
                added(summary),
            ];
            let mut row = vec![
                summary.scheme.to_owned(),
                summary.authentication.to_owned(),
                summary.exchange_count.to_string(),
                summary.failure_count.to_string(),
            ];
            row.extend(figures.map(cell));
            row
        });
        self.table("Schemes side by side", &headings, is_word, rows);
    }

    fn distribution(&mut self, record: &RunRecord) {
        self.heading("How long exchanges took");
        let samples: Vec<_> = record.schemes.iter().map(SchemeRun::whole).collect();
        let distributions: Vec<_> = samples.iter().map(Distribution::from).collect();
        let plots = [WIDE, NARROW].map(|size| cumulative(&distributions, PLOT, size));
        let [Some(wide), Some(narrow)] = plots else {
            return self.add(format_args!("<p>No exchange succeeded, so there is nothing to draw.</p>\n"));
        };
        self.add(format_args!("<figure>\n<ul class=\"legend\">\n"));
        for (series, (run, sample)) in record.schemes.iter().zip(&samples).enumerate() {
            if !sample.values().is_empty() {
                self.add(format_args!("<li>{}<span>{}</span></li>\n", swatch(series), Escaped(&run.label())));
            }
        }
        let zeros = samples.iter().any(|sample| sample.values().first() == Some(&0));
        let zeros = if zeros { " Times of zero stand at the left edge, which is not zero." } else { "" };
        self.add(format_args!(
            "</ul>\n{wide}{narrow}<figcaption>The further left a line, the faster the scheme; the steeper, the \
             steadier. Where a line crosses 50\u{a0}% is its median.{zeros}</figcaption>\n</figure>\n"
        ));
    }

    fn percentiles(&mut self, summaries: &[SchemeSummary<'_>]) {
        if summaries.iter().all(|summary| summary.times.is_none()) {
            return;
        }
        self.heading("Whole exchange in figures");
        let headings = [
            "Scheme",
            "Authentication",
            "p50 (median)",
            "p90",
            "p99",
            "Maximum",
            "Mean",
            "Standard deviation",
        ];
        let rows = summaries.iter().map(|summary| {
            let figure = |format: fn(&Times) -> Option<String>| cell(summary.times.as_ref().and_then(format));
            vec![
                summary.scheme.to_owned(),
                summary.authentication.to_owned(),
                figure(|times| Some(time(times.whole_median_ns))),
                figure(|times| Some(time(times.whole_p90_ns))),
                figure(|times| Some(time(times.whole_p99_ns))),
                figure(|times| Some(time(times.whole_max_ns))),
                figure(|times| Some(time(times.whole_mean_ns.round() as u64))),
                figure(|times| times.whole_deviation_ns.map(|deviation| time(deviation.round() as u64))),
            ]
        });
        self.table("Percentiles of whole exchanges", &headings, is_word, rows);
    }

    fn key_exchanges(&mut self, record: &RunRecord) {
        let mut rows = record.schemes.iter().filter_map(|run| Some((run, run.key_exchange?))).peekable();
        if rows.peek().is_none() {
            return;
        }
        self.heading("Key exchange");
        self.add(format_args!(
            "<p>Before its first exchange, a client fetches keys and cookies over TLS. It does so once: every later \
             response brings a new cookie. None of this time is in the figures above.</p>\n"
        ));
        let headings =
            ["Scheme", "Authentication", "TCP connection", "TLS handshake", "Request, response", "Together"];
        let rows = rows.map(|(run, key_exchange)| {
            let KeyExchange { connect_ns, handshake_ns, exchange_ns } = key_exchange;
            let together = connect_ns.saturating_add(handshake_ns).saturating_add(exchange_ns);
            let mut row = vec![run.scheme.clone(), run.authentication.clone()];
            row.extend([connect_ns, handshake_ns, exchange_ns, together].map(|ns| typeset(&time(ns))));
            row
        });
        self.table("Times of the key exchange", &headings, is_word, rows);
    }

    fn antp_phases(&mut self, record: &RunRecord) {
        let mut rows = record.schemes.iter().filter_map(|run| Some((run, run.antp_phases?))).peekable();
        if rows.peek().is_none() {
            return;
        }
        self.heading("Phases of ANTP");
        self.add(format_args!(
            "<p>Before its first exchange, a client of ANTP negotiates, checks certificates and exchanges keys, over \
             the same port. It does so once for the life of a key. None of this time is in the figures above.</p>\n"
        ));
        let headings = [
            "Scheme",
            "Authentication",
            "Negotiation",
            "Certificate check",
            "Encapsulation",
            "Key exchange",
            "Together",
        ];
        let rows = rows.map(|(run, phases)| {
            let AntpPhases { negotiation_ns, certificate_check_ns, encapsulation_ns, exchange_ns } = phases;
            let times = [negotiation_ns, certificate_check_ns, encapsulation_ns, exchange_ns];
            let together = times.iter().fold(0, |sum: u64, &ns| sum.saturating_add(ns));
            let mut row = vec![run.scheme.clone(), run.authentication.clone()];
            row.extend(times.into_iter().chain([together]).map(|ns| typeset(&time(ns))));
            row
        });
        self.table("Times of the phases", &headings, is_word, rows);
    }

    fn failures(&mut self, record: &RunRecord) {
        let rows: Vec<_> = record
            .schemes
            .iter()
            .flat_map(|run| run.failures.iter().map(move |failure| (run, failure)))
            .map(|(run, failure)| vec![run.label(), failure.cause.clone(), failure.count.to_string()])
            .collect();
        if rows.is_empty() {
            return;
        }
        self.heading("Failures");
        self.add(format_args!("<p>Exchanges that failed have no time and are in no figure above.</p>\n"));
        self.table("Failures by cause", &["Scheme", "Cause", "Count"], is_word, rows.into_iter());
    }

    /// How to read the page, and what it does not show.
    fn notes(&mut self, record: &RunRecord) {
        self.heading("How to read this");
        self.add(format_args!("<dl>\n{NOTES}"));
        let path = Escaped(&record.path);
        // On these paths client and server share a host, and with it a clock.
        let limits = match record.path.as_str() {
            "loopback" | "veth" => {
                "Client and server shared one host, with no network between them. Over a real network every exchange \
                 takes longer, so the same added time is a smaller share there. Both read the same clock: an offset \
                 other than zero is the error of the measurement, not of a clock."
            }
            _ => {
                "The figures hold for this path, these two hosts and their load at that time. An offset holds the \
                 error of both clocks and half of any difference between the two directions of the path."
            }
        };
        self.add(format_args!(
            "<dt>Limits: the path is {path}</dt>\n<dd>{limits} This is one run on one machine: a difference that the \
             next run does not show again means nothing.</dd>\n</dl>\n"
        ));
    }
}

/// How often the server was asked, in words.
fn request_count(run: &SchemeRun) -> String {
    let count = run.failure_count().saturating_add(run.exchanges.len() as u64);
    format!("{count} {} with {}", if count == 1 { "time" } else { "times" }, Escaped(&run.label()))
}

/// The first two columns of every table are words.
fn is_word(column: usize) -> bool {
    column < 2
}

const NOTES: &str = "\
<dt>Whole exchange</dt>\n\
<dd>From before the request was made until the response was checked, by the client\u{2019}s clock: making and sealing \
the request, the way to the server, the server\u{2019}s work, the way back, verifying. The NTS performance study calls \
it d<sub>CNTS</sub> = t<sub>10</sub> \u{2212} t<sub>5</sub>.</dd>\n\
<dt>Added by authentication</dt>\n\
<dd>The scheme\u{2019}s median whole exchange minus that of plain NTP, and the difference as a share of \
the latter.</dd>\n\
<dt>Offset, delay</dt>\n\
<dd>How far the server\u{2019}s clock is ahead of the client\u{2019}s, and how long the datagrams were under way, by \
the four timestamps of an exchange (RFC\u{a0}5905, section\u{a0}8).</dd>\n\
<dt>p50, p90, p99</dt>\n\
<dd>At least that percentage of the exchanges took no longer. Percentiles are values that were measured (nearest \
rank); nothing is interpolated.</dd>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::assert_whole;
    use crate::run::Failure;
    use crate::run::tests::{record, scheme};

    const HOSTILE: &str = "<script>alert('x')</script>\"&";

    fn full() -> RunRecord {
        let mut nts = scheme("nts", "AES-SIV-CMAC-256", &[78_600, 80_000, 90_000]);
        nts.key_exchange =
            Some(KeyExchange { connect_ns: 60_000, handshake_ns: 900_000, exchange_ns: 40_000 });
        nts.failures.push(Failure { cause: "no answer".to_owned(), count: 2 });
        record(vec![scheme("plain", "none", &[60_000]), nts])
    }

    #[test]
    fn no_string_of_a_record_becomes_markup() {
        let mut record = full();
        let hostile = || HOSTILE.to_owned();
        record.command = hostile();
        record.version = hostile();
        record.commit = hostile();
        record.path = hostile();
        record.host.cpu = hostile();
        record.host.kernel = hostile();
        let run = &mut record.schemes[1];
        run.scheme = hostile();
        run.authentication = hostile();
        run.failures[0].cause = hostile();
        let page = page(&record);
        assert!(!page.contains("<script") && !page.contains("alert('") && !page.contains("\"&<"), "{page}");
        // Nine strings: each is shown at least once.
        assert!(page.matches("&lt;script&gt;").count() >= 9);
    }

    #[test]
    fn page_needs_nothing_from_elsewhere() {
        let page = page(&full());
        for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn every_section_has_its_figures() {
        let page = page(&full());
        for text in [
            "1 time with plain and 5 times with nts (AES-SIV-CMAC-256).",
            "2026-07-03 12:00:00 UTC",
            "<strong>20.0\u{a0}\u{b5}s more</strong>",
            "plain NTP:\u{a0}+33\u{a0}%",
            "<td>1.00\u{a0}ms</td>",
            "<td class=\"word\">no answer</td><td>2</td>",
            "the path is loopback",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let page = page(&record(vec![scheme("plain", "none", &[60_000])]));
        for text in ["Key exchange", "Failures", "class=\"findings\""] {
            assert!(!page.contains(text), "{text}");
        }
    }

    #[test]
    fn run_without_exchanges_has_a_page() {
        for schemes in [Vec::new(), vec![scheme("plain", "none", &[]), scheme("nts", "a", &[])]] {
            let page = page(&record(schemes));
            assert!(page.contains("nothing to draw") && !page.contains("<figure>"));
        }
    }

    #[test]
    fn findings_say_which_way_the_difference_goes() {
        let finding = |whole_ns| {
            let page =
                page(&record(vec![scheme("plain", "none", &[60_000]), scheme("nts", "", &[whole_ns])]));
            let start = page.find("The median exchange of").unwrap();
            page[start..start + page[start..].find("</li>").unwrap()].replace('\u{a0}', " ")
        };
        let than = "The median exchange of <strong>nts</strong> takes <strong>30.0 \u{b5}s";
        assert_eq!(finding(90_000), format!("{than} more</strong> than that of plain NTP: +50 %."));
        assert_eq!(finding(30_000), format!("{than} less</strong> than that of plain NTP: \u{2212}50 %."));
        assert!(finding(60_000).ends_with("takes as long as that of plain NTP: 0 %."));
    }

    #[test]
    fn elements_are_closed() {
        for record in [full(), record(Vec::<SchemeRun>::new())] {
            let page = page(&record);
            assert_whole(&page);
        }
    }

    #[test]
    fn zero_times_are_explained() {
        assert!(page(&record(vec![scheme("plain", "none", &[0, 5])])).contains("Times of zero"));
        assert!(!page(&full()).contains("Times of zero"));
    }

    #[test]
    fn only_a_shared_host_is_said_to_have_one_clock() {
        let mut record = full();
        assert!(page(&record).contains("Both read the same clock"));
        record.path = "lab network".to_owned();
        assert!(!page(&record).contains("Both read the same clock"));
    }
}
