//! What a page of load runs must show, and what must never get into it.

use super::*;
use crate::load::tests::{record, record_with};
use crate::render::page::assert_whole;

fn page(records: &[&LoadRecord]) -> String {
    report(records).page()
}

const HOSTILE: &str = "<script>alert('x')</script>\"&";

fn texts(page: &str, present: &[&str]) {
    for text in present {
        assert!(page.contains(text), "{text} is not in\n{page}");
    }
}

#[test]
fn every_section_has_its_figures() {
    let page = page(&[&record()]);
    texts(
        &page,
        &[
            "over the path <strong>network</strong>",
            "From 2,800/s to 2,900/s; the server was the limit.",
            "<strong>1 step invalid</strong>",
            "<tr class=\"void\"><th scope=\"row\">8,000</th>",
            "INVALID: generator: 1\u{a0}% of requests left 2.90 ms late or more",
            "<h2>What limited each step</h2>",
            "<h2>Second by second</h2>",
            "Agent CPU @ 3.00GHz",
            "What helps: offer less, or use more --workers or hosts.",
            "class=\"cross series series-0\"",
            ">capacity</text>",
            "<th scope=\"row\" class=\"word\">bad-tag</th>",
            "<tr class=\"total void\"><th scope=\"row\" class=\"word\">total</th>",
            "its own limit: generator fell behind: 87.5\u{a0}%",
            "<th scope=\"row\" class=\"word\">d_CNTP</th>",
            "The largest request is 244 octets over IPv4",
            "Limits: the path is network",
        ],
    );
    // Five charts and two distributions, in two sizes each.
    assert_eq!(page.matches("<svg class=\"plot ").count(), 14);
}

#[test]
fn server_s_clock_and_sampling_are_told_where_the_server_tells_them() {
    let mut record = record();
    let said = ["is subtracted from each of its stages", "The server timed one request for time in"];
    assert!(said.iter().all(|words| !page(&[&record]).contains(words)), "earlier servers do not tell");
    let spans = record.steps[0].spans.as_mut().unwrap();
    (spans.clock_ns, spans.every) = (Some(27), Some(64));
    record.steps[1].spans = Some(Spans { clock_ns: Some(31), ..Spans::default() });
    let page = page(&[&record]);
    texts(&page, &["costs, 27 to 31\u{a0}ns, is subtracted from each", "timed one request for time in 64;"]);
    let again = LoadRecord::from_json(&record.to_json()).unwrap();
    assert_eq!(again, record);
    record.parameters.background_sources = vec!["127.0.0.2".to_owned(), "127.0.0.3".to_owned()];
    record.parameters.background_rps = 30.0;
    let from = "background load of 30/s from 127.0.0.2, 127.0.0.3, not measured";
    texts(&report(&[&record]).page(), &[from]);
}

#[test]
fn several_runs_stand_side_by_side_with_ratios() {
    let (first, mut second) = (record(), record());
    second.scheme = "plain".to_owned();
    second.capacity = Some(crate::load::Capacity { at_least: Some(5600.0), ..second.capacity.unwrap() });
    second.capacity.as_mut().unwrap().below = Some(5800.0);
    second.steps[1].tally.latency_us.as_mut().unwrap().p99 = 130.0;
    let page = page(&[&first, &second]);
    texts(
        &page,
        &[
            "<h2>B (lab server) against A (lab server)</h2>",
            "from 5,600 to 5,800 against from 2,800 to 2,900 requests a second, a ratio of 2.00; the intervals allow",
            "<li>scheme: new plain; old nts</li>",
            "<td>130.0\u{a0}\u{b5}s</td><td>260.0\u{a0}\u{b5}s</td><td>0.50</td>",
            "<h2>Steps of A (lab server)</h2>",
            "<h2>Steps of B (lab server)</h2>",
            "<span>B (lab server): 4,000/s</span>",
        ],
    );
    assert!(!page.contains(">capacity</text>"), "whose capacity would it be?");
}

#[test]
fn single_step_has_a_page_without_plots_against_the_rate() {
    let mut record = record();
    record.steps.truncate(1);
    record.capacity = None;
    record.search = None;
    let page = page(&[&record]);
    for absent in ["What was answered", "Latency against the rate", "by cause", "INVALID", "class=\"void\""] {
        assert!(!page.contains(absent), "{absent}");
    }
    texts(&page, &["How long answers took", "<h2>Steps</h2>", "not searched for"]);
    // Distributions of latency and of spans, and two charts of its seconds.
    assert_eq!(page.matches("<svg class=\"plot ").count(), 8);
}

#[test]
fn run_without_steps_has_a_page() {
    let mut record = record();
    record.steps.clear();
    record.interrupted = Some(HOSTILE.to_owned().into());
    let page = page(&[&record]);
    texts(
        &page,
        &["No step was measured", "nothing to draw", "The run was interrupted</strong>: &lt;script"],
    );
    assert!(!page.contains("<figure>"));
}

#[test]
fn no_string_of_a_record_becomes_markup() {
    let mut hostile = record_with(HOSTILE);
    hostile.interrupted = Some(HOSTILE.to_owned().into());
    for page in [page(&[&hostile]), page(&[&hostile, &record()])] {
        assert!(!page.contains("<script") && !page.contains("alert('") && !page.contains("\"&<"), "{page}");
        // Twenty-five strings, all of which are shown.
        assert!(page.matches("&lt;script&gt;").count() >= 25, "{}", page.matches("&lt;script&gt;").count());
    }
}

#[test]
fn page_needs_nothing_from_elsewhere_and_closes_what_it_opens() {
    let single = page(&[&record()]);
    for page in [single, page(&[&record(), &record(), &record(), &record()])] {
        assert!(page.contains("default-src 'none'"));
        for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "id=\""]
        {
            assert!(!page.contains(reference), "{reference}");
        }
        assert_whole(&page);
    }
}

#[test]
fn closed_loop_is_drawn_against_what_it_sent() {
    let mut record = record();
    record.steps.iter_mut().for_each(|step| step.offered_rps = None);
    record.parameters.window = Some(8);
    texts(&page(&[&record]), &["sent a second", "Closed loop, 8 in flight per worker"]);
}

/// Whatever numbers a file holds, as long as it is read: each way of rendering ends, and draws inside its frame.
#[test]
fn extreme_values_are_rendered() {
    let most = u64::MAX;
    for (offered_rps, seconds) in [(0.0, 0.0), (-1e29, 1e-99), (1e29, 1e29), (1.0, -1.0)] {
        let mut record = record();
        for (index, step) in record.steps.iter_mut().enumerate() {
            (step.offered_rps, step.seconds) = (Some(offered_rps * (index + 1) as f64), seconds);
            let tally = Tally {
                scheduled: most,
                sent: most,
                lost: most,
                surplus: most,
                causes: [(crate::load::Cause::Timeout, most)].into(),
                ..Tally::default()
            };
            (step.accompanying, step.background) = (Some(tally.clone()), Some(tally.clone()));
            step.tally = Tally { answered: most, lost: 0, causes: [].into(), ..tally };
            step.tally.histograms.latency_ns = vec![(i64::MIN, most), (0, 1), (i64::MAX, most)].into();
            step.tally.histograms.offset_ns = step.tally.histograms.latency_ns.clone();
            step.tally.summarise();
            step.request_size = u32::MAX;
            step.hosts.iter_mut().for_each(|part| part.start_skew_us = -1e30);
            step.generator_busy_share = Some(1.0);
        }
        let record = LoadRecord::from_json(&record.to_json()).unwrap();
        let page = page(&[&record, &crate::load::tests::record(), &record]);
        for path in page.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            for number in path.split(['M', 'L', 'H', 'V', ' ']).filter(|number| !number.is_empty()) {
                let number: f64 = number.parse().unwrap();
                assert!((0.0..=900.0).contains(&number), "{offered_rps} in {seconds} s: {path}");
            }
        }
        assert!(crate::load::text::summary(&record).lines().count() > 30);
        assert_eq!(crate::load::csv::csv(&record).lines().count(), 30);
    }
}
