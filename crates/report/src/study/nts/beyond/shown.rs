//! Beyond the paper, as tables, pictures and sentences.

use super::{RateStep, RatesRecord, SessionsRecord};
use crate::load::Limit;
use crate::published::nts::{TRANSFER_AXIS_END_RPS, TRANSFERS_ASKED_RPS_MAX, TRANSFERS_PER_EXCHANGE};
use crate::render::{Block, Chart, Line, Medium, Point, Section, Table, Unit, Weight, or_absent};
use crate::study::nts::{Cookies, Pattern, Records, SESSION_TRANSFERS, Workers};
use crate::units::{capital, count, joined, listed, percent, rate, ratio, time};

/// The end of the axes of the paper's Figures 9, 11 and 12.
const AXIS_END_RPS: f64 = TRANSFER_AXIS_END_RPS as f64;
/// Of more transfers than this share a rate is more than the server carries.
const LOST_SHARE_MAX: f64 = 0.01;

/// What was measured beyond the paper.
#[derive(Debug)]
pub(in crate::study::nts) struct Beyond<'a> {
    sessions: &'a [SessionsRecord],
    rates: &'a [RatesRecord],
}

fn ns(value: f64) -> String {
    time(value.round() as u64)
}

/// What sessions of a kind cost the server, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    transfers: u32,
    cookies: Cookies,
    session: f64,
    /// What an exchange and so many transfers cost alone; `None` if one of them was not measured.
    predicted: Option<f64>,
    /// What the exchange alone costs.
    exchange: Option<f64>,
}

impl Cost {
    fn per_transfer(&self) -> f64 {
        self.session / f64::from(self.transfers)
    }

    /// The exchange's share, by what it and the transfers cost alone.
    fn exchange_share(&self) -> Option<f64> {
        Some(self.exchange? / self.predicted.filter(|predicted| *predicted > 0.0)?)
    }

    fn over_prediction(&self) -> Option<f64> {
        Some(self.session / self.predicted.filter(|predicted| *predicted > 0.0)?)
    }
}

impl<'a> Beyond<'a> {
    pub(in crate::study::nts) fn new(records: &'a Records) -> Self {
        Beyond { sessions: &records.sessions, rates: &records.rates }
    }

    fn record(&self, pattern: Pattern) -> Option<&'a SessionsRecord> {
        self.sessions.iter().find(|record| record.pattern() == Some(pattern))
    }

    fn cost_of(&self, pattern: Pattern) -> Option<f64> {
        self.record(pattern)?.cost_ns()
    }

    /// What sessions of this kind cost, if they were measured.
    fn cost(&self, transfers: u32, cookies: Cookies) -> Option<Cost> {
        let exchange = self.cost_of(Pattern::Exchanges);
        let transfer = self.cost_of(Pattern::Transfers(cookies));
        let predicted = exchange
            .zip(transfer)
            .map(|(exchange, transfer)| f64::from(transfers).mul_add(transfer, exchange));
        let session = self.cost_of(Pattern::Sessions(transfers, cookies))?;
        Some(Cost { transfers, cookies, session, predicted, exchange })
    }

    fn costs(&self, cookies: Cookies) -> Vec<Cost> {
        SESSION_TRANSFERS.into_iter().filter_map(|count| self.cost(count, cookies)).collect()
    }

    /// Those of the first kind of cookies of which there are any.
    fn any_costs(&self) -> Vec<Cost> {
        let each = Cookies::ALL.into_iter().map(|cookies| self.costs(cookies));
        each.into_iter().find(|costs| !costs.is_empty()).unwrap_or_default()
    }

    /// Whether sessions were measured.
    pub(in crate::study::nts) fn has_sessions(&self) -> bool {
        !self.any_costs().is_empty()
    }

    /// Whether transfers alone were measured.
    pub(in crate::study::nts) fn has_rates(&self) -> bool {
        self.all_rates().any(|(_, record)| record.steps.iter().any(counts))
    }

    fn rates_of(&self, workers: Workers) -> Option<&'a RatesRecord> {
        self.rates.iter().find(|record| record.workers() == Some(workers))
    }

    /// Records of rates, whether a step of them counts or not.
    fn all_rates(&self) -> impl Iterator<Item = (Workers, &'a RatesRecord)> + '_ {
        Workers::ALL.into_iter().filter_map(|workers| Some((workers, self.rates_of(workers)?)))
    }

    /// What follows, the weightiest first.
    pub(in crate::study::nts) fn findings(&self) -> Vec<String> {
        let sessions = [self.of_sharing(), self.of_prediction(), self.of_cookies()];
        sessions.into_iter().flatten().chain(self.all_rates().map(of_rates)).collect()
    }

    /// What sharing an exchange between more transfers saves.
    fn of_sharing(&self) -> Option<String> {
        let costs = self.any_costs();
        let (first, last) = (costs.first()?, costs.last()?);
        let mut told = vec![format!(
            "A transfer costs the server {} of processor time with {} for each key exchange, the exchange included",
            ns(first.per_transfer()),
            first.transfers
        )];
        if last.transfers > first.transfers {
            let fall = ratio(first.per_transfer() / last.per_transfer());
            told.push(format!(
                ", and {} with {}: {fall} times less",
                ns(last.per_transfer()),
                last.transfers
            ));
        }
        let share = |cost: &Cost| {
            let share = percent(cost.exchange_share()?);
            Some(format!("{share} % with {}", cost.transfers))
        };
        let paper_s = costs
            .iter()
            .find(|cost| cost.transfers == TRANSFERS_PER_EXCHANGE && cost.transfers != last.transfers);
        let shares: Vec<String> = paper_s.into_iter().chain([last]).filter_map(share).collect();
        if !shares.is_empty() {
            told.push(format!(". By what both cost alone the exchange is {} of that", listed(shares)));
        }
        Some(format!("{}.", told.concat()))
    }

    /// How far sessions are what their parts cost alone.
    fn of_prediction(&self) -> Option<String> {
        let all = || Cookies::ALL.into_iter().flat_map(|cookies| self.costs(cookies));
        let ratios: Vec<f64> = all().filter_map(|cost| cost.over_prediction()).collect();
        let (low, high) =
            (ratios.iter().copied().reduce(f64::min)?, ratios.iter().copied().reduce(f64::max)?);
        let exchange = self.cost_of(Pattern::Exchanges)?;
        let transfer =
            Cookies::ALL.into_iter().find_map(|cookies| self.cost_of(Pattern::Transfers(cookies)))?;
        Some(format!(
            "Alone, an exchange costs {} and a transfer {}, so that one exchange is worth {} transfers; sessions cost \
             {} to {} times what these predict.",
            ns(exchange),
            ns(transfer),
            rate(exchange / transfer),
            ratio(low),
            ratio(high)
        ))
    }

    /// What fresh cookies cost.
    fn of_cookies(&self) -> Option<String> {
        let both = |&count: &u32| Some((self.cost(count, Cookies::Fresh)?, self.cost(count, Cookies::One)?));
        let (fresh, one) = SESSION_TRANSFERS.iter().rev().find_map(both)?;
        Some(format!(
            "With {} transfers for each exchange, a session with fresh cookies costs the server {} times what one with \
             a single cookie costs: it opens a cookie and makes a fresh one for each answer in both.",
            fresh.transfers,
            ratio(fresh.session / one.session)
        ))
    }

    /// What it says to a statement of the paper, if anything.
    pub(in crate::study::nts) fn answer(&self, id: &str) -> Option<String> {
        let rates = || joined(self.all_rates().map(of_rates), " ");
        let both = |parts: [Option<String>; 2]| joined(parts.into_iter().flatten(), " ");
        match id {
            "fresh-cookies" => self.of_cookies(),
            "exchange-117-percent" => self.of_sharing(),
            "three-transfers" => both([self.of_sharing(), self.of_prediction()]),
            "transfers-offered" => rates(),
            "too-few-transfers" | "future-work" => both([self.of_sharing(), rates()]),
            _ => None,
        }
    }

    fn sessions_table(&self) -> Option<Table> {
        let measured = Pattern::all().into_iter().filter_map(|pattern| {
            let record = self.record(pattern)?;
            Some((pattern, record, record.cost_ns()?))
        });
        let rows: Vec<(Pattern, &SessionsRecord, f64)> = measured.collect();
        if rows.is_empty() {
            return None;
        }
        let cost = |pattern: Pattern| match pattern {
            Pattern::Sessions(count, cookies) => self.cost(count, cookies),
            Pattern::Exchanges | Pattern::Transfers(_) => None,
        };
        let of_core = |per: u32, cost: f64| rate(f64::from(per) * 1e9 / cost);
        type Of<'r> = (Pattern, &'r SessionsRecord, f64);
        let table = Table::of("Exchanges and transfers", rows)
            .words("pattern", |(pattern, ..): &Of<'_>| pattern.name())
            .number("exchanges /s of a core", |(pattern, _, cost)| match pattern {
                Pattern::Exchanges | Pattern::Sessions(..) => of_core(1, *cost),
                Pattern::Transfers(_) => or_absent(None::<u8>),
            })
            .number("transfers /s of a core", |(pattern, _, cost)| match pattern {
                Pattern::Exchanges => or_absent(None::<u8>),
                Pattern::Transfers(_) => of_core(1, *cost),
                Pattern::Sessions(count, _) => of_core(*count, *cost),
            })
            .number("server per session", |(_, _, cost)| ns(*cost))
            .number("per transfer", |(pattern, ..)| or_absent(cost(*pattern).map(|cost| ns(cost.per_transfer()))))
            .number("predicted", |(pattern, ..)| {
                let per_transfer = |cost: Cost| Some(ns(cost.predicted? / f64::from(cost.transfers)));
                or_absent(cost(*pattern).and_then(per_transfer))
            })
            .number("exchange", |(pattern, ..)| {
                let share = cost(*pattern).and_then(|cost| cost.exchange_share());
                or_absent(share.map(|share| format!("{} %", percent(share))))
            })
            .number_on(Medium::Page, "answered /s", |(_, record, _)| {
                rate(record.answered_within as f64 / record.seconds.max(1e-9))
            })
            .number_on(Medium::Page, "generator busy", |(_, record, _)| {
                or_absent(record.generator_busy_share.map(|share| format!("{} %", percent(share))))
            })
            .noted([
                "A closed loop; each session is followed to its end. Server: its processor time in user and kernel \
                 mode, of exchanges and transfers together. Of a core: what follows for one that does nothing else. \
                 Predicted: per transfer, by what an exchange and a transfer cost alone. Exchange: its share of \
                 that. Answered: key exchanges, or transfers alone, a second within the loop, which the generator may \
                 have limited.",
            ]);
        Some(table)
    }

    fn sessions_chart(&self) -> Option<Block> {
        let mut lines = Vec::new();
        let mut titles: Vec<(f64, String)> = Vec::new();
        for (index, cookies) in Cookies::ALL.into_iter().enumerate() {
            let costs = self.costs(cookies);
            let line = |name: String, dashes, value: &dyn Fn(&Cost) -> Option<f64>| {
                let point = |cost: &Cost| {
                    Some(Point {
                        rate: f64::from(cost.transfers),
                        value: value(cost)?,
                        valid: true,
                        interval: None,
                    })
                };
                Line { name, colour: index, dashes, points: costs.iter().filter_map(point).collect() }
            };
            let predicted = |cost: &Cost| Some(cost.predicted? / f64::from(cost.transfers));
            let both = [
                line(cookies.name().to_owned(), 0, &|cost| Some(cost.per_transfer())),
                line(format!("{}, predicted", cookies.name()), 1, &predicted),
            ];
            lines.extend(both.into_iter().filter(|line| !line.points.is_empty()));
            for cost in &costs {
                let told = format!("{} {}", cookies.name(), ns(cost.per_transfer()));
                let transfers = f64::from(cost.transfers);
                match titles.iter_mut().find(|(other, _)| *other == transfers) {
                    Some((_, before)) => *before = format!("{before}; {told}"),
                    None => titles.push((transfers, format!("{} transfers: {told}", cost.transfers))),
                }
            }
        }
        if lines.is_empty() {
            return None;
        }
        let told = joined([self.of_sharing(), self.of_prediction()].into_iter().flatten(), " ");
        let chart = Chart {
            label: format!("Server time per transfer. {}", told.unwrap_or_default()).into(),
            up: "server\u{2019}s time per transfer, logarithmic scale",
            along: "transfers for each key exchange",
            unit: Unit::Time,
            titles,
            lines,
            ..Chart::default()
        };
        let caption = "Processor time of the server for each transfer, its part of the key exchange included, and what \
                       an exchange and a transfer alone predict.";
        Some(Block::figure(chart, caption))
    }

    fn rates_chart(&self) -> Option<Block> {
        let (mut lines, mut titles) = (Vec::new(), Vec::new());
        for (index, (workers, record)) in self.all_rates().enumerate() {
            let line = |name: &str, dashes, value: fn(&RateStep) -> Option<u64>| {
                let point = |step: &RateStep| {
                    Some(Point {
                        rate: step.offered_rps,
                        value: value(step)? as f64,
                        valid: counts(step),
                        interval: None,
                    })
                };
                let points = record.steps.iter().filter_map(point).collect();
                Line { name: format!("{}, {name}", workers.name()), colour: index, dashes, points }
            };
            lines.push(line("median", 0, |step| step.p50_ns));
            lines.push(line("95th percentile", 1, |step| step.p95_ns));
            titles.extend(record.steps.iter().map(|step| (step.offered_rps, told(workers, step))));
        }
        if lines.is_empty() {
            return None;
        }
        let found = joined(self.all_rates().map(of_rates), " ").unwrap_or_default();
        let chart = Chart {
            label: format!("Latency of transfers against their rate. {found}").into(),
            up: "latency, logarithmic scale",
            along: "requests a second",
            unit: Unit::Time,
            void: "a rate that the generator did not keep",
            marks: vec![(AXIS_END_RPS, "end of the paper\u{2019}s axis".to_owned())],
            titles,
            lines,
            ..Chart::default()
        };
        let caption = "NTS alone, of clients that have their keys, each request with a fresh cookie: from the instant \
                       at which it was due to its answer.";
        Some(Block::figure(chart, caption))
    }

    fn rates_table(&self) -> Option<Table> {
        let rows: Vec<(Workers, &RateStep)> = self
            .all_rates()
            .flat_map(|(workers, record)| record.steps.iter().map(move |step| (workers, step)))
            .collect();
        type Of<'r> = (Workers, &'r RateStep);
        let shown = |value: Option<u64>| or_absent(value.map(time));
        (!rows.is_empty()).then(|| {
            Table::of("NTS alone", rows)
                .words("server", |(workers, _): &Of<'_>| workers.name())
                .number("offered /s", |(_, step)| rate(step.offered_rps))
                .number("answered /s", |(_, step)| {
                    rate(step.transfers.answered as f64 / step.seconds.max(1e-9))
                })
                .number("not in time", |(_, step)| format!("{} %", percent(step.lost_share())))
                .number("median", |(_, step)| shown(step.p50_ns))
                .number("95th percentile", |(_, step)| shown(step.p95_ns))
                .number_on(Medium::Page, "server per transfer", |(_, step)| {
                    or_absent(step.server_us.map(|us| ns(us * 1e3)))
                })
                .words("limited by", |(_, step)| limited_by(step.limited_by))
                .words_on(Medium::Text, "counts", |(_, step)| if counts(step) { "yes" } else { "no" })
                .words_on(Medium::Page, "does not count", |(_, step)| step.why_invalid.clone().unwrap_or_default())
                .weighed(|(_, step)| Weight::of(counts(step)))
                .noted([
                    "Latency is from the instant at which a request was due. Not in time: what was not answered \
                     within a second, or not sent.",
                ])
        })
    }
}

fn counts(step: &RateStep) -> bool {
    step.why_invalid.is_none()
}

const fn limited_by(limit: Limit) -> &'static str {
    match limit {
        Limit::Nothing => "nothing",
        Limit::Server => "the server",
        Limit::Host => "the server's host",
        Limit::Generator => "the generator",
        Limit::Path => "the path",
        Limit::Unknown => "unknown",
    }
}

/// What a reader is told who points at a rate.
fn told(workers: Workers, step: &RateStep) -> String {
    let times = step.p50_ns.zip(step.p95_ns).map_or_else(
        || "no answer".to_owned(),
        |(p50, p95)| format!("median {}, 95th percentile {}", time(p50), time(p95)),
    );
    let why =
        step.why_invalid.as_ref().map_or_else(String::new, |why| format!(", which does not count: {why}"));
    format!("{}, {} a second: {times}{why}", workers.name(), rate(step.offered_rps))
}

/// How far the rates of a server went.
fn of_rates((workers, record): (Workers, &RatesRecord)) -> String {
    let counted = || record.steps.iter().filter(|step| counts(step));
    let carried = counted().take_while(|step| step.lost_share() <= LOST_SHARE_MAX).last();
    let name = capital(workers.name());
    let shared = match record.shares_processor {
        true => " (the generator shares a processor with it)",
        false => "",
    };
    let Some(first) = counted().next() else {
        return format!(
            "{name}{shared}: no rate of transfers alone counts, as the generator kept none of them. A closed loop of \
             them brought {} a second.",
            rate(record.closed_rps)
        );
    };
    let Some(best) = carried else {
        return format!(
            "{name}{shared}: of {} transfers a second, the least that counts, {} % have no answer in time.",
            rate(first.offered_rps),
            percent(first.lost_share())
        );
    };
    let times = best.p50_ns.zip(best.p95_ns).map_or_else(String::new, |(p50, p95)| {
        format!(", with a median of {} and a 95th percentile of {}", time(p50), time(p95))
    });
    let last = counted().next_back().filter(|last| last.offered_rps > best.offered_rps);
    let beyond = match last {
        Some(last) => format!(
            " At {} {} % have no answer in time, limited by {}.",
            rate(last.offered_rps),
            percent(last.lost_share()),
            limited_by(last.limited_by)
        ),
        None => match record.steps.last().filter(|last| !counts(last)) {
            Some(spoiled) => {
                format!(" {} are more than the generator can offer here.", rate(spoiled.offered_rps))
            }
            None => " No higher rate was offered.".to_owned(),
        },
    };
    let against = best.offered_rps / AXIS_END_RPS;
    format!(
        "{name}{shared}: NTS alone is carried up to {} transfers a second{times}, {} times the end of the \
         paper\u{2019}s axis, of which at most {} were asked for.{beyond}",
        rate(best.offered_rps),
        ratio(against),
        count(TRANSFERS_ASKED_RPS_MAX.into())
    )
}

/// What goes beyond the paper; nothing where nothing of it was measured.
pub(in crate::study::nts) fn section(beyond: &Beyond<'_>) -> Option<Section> {
    let tables = [beyond.sessions_table(), beyond.rates_table()];
    if tables.iter().all(Option::is_none) {
        return None;
    }
    let [sessions, rates] = tables;
    let mut section = Section::new("Beyond the paper");
    section.add(Block::findings(beyond.findings()));
    section.say(
        "The paper has three transfers for each key exchange, with one cookie, and leaves more of them to others. Here \
         a session is an exchange and its transfers, one after the other. The server has one worker for time, one for \
         key exchanges, the first processor and its keys in a file; the generator has the last processor.",
    );
    if let Some(chart) = beyond.sessions_chart() {
        section.add(chart);
    }
    section.show(sessions);
    if beyond.rates.iter().any(|record| record.shares_processor) {
        section.say(
            "With two workers the server may use the generator\u{2019}s processor, too, as there is no third one: each \
             takes from the other, and these rates are no server\u{2019}s with two cores of its own.",
        );
    }
    if let Some(chart) = beyond.rates_chart() {
        section.add(chart);
    }
    section.show(rates);
    Some(section)
}

#[cfg(test)]
mod tests;
