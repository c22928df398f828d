//! Plans of every paper, and what is refused of one.

use serde::de::DeserializeOwned;

use super::*;

/// A plan with a head by hand.
pub(crate) fn plan_of<S: Settings>(settings: S, found: S::Found, tasks: Vec<Task>) -> Plan<S> {
    Plan {
        paper: S::PAPER,
        version: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        command: format!("authentick study run {} --quick --out study", S::PAPER.name()),
        started_unix_s: 1_790_000_000,
        machine: Host {
            cpu: "A <b>processor".to_owned(),
            cpu_count: 2,
            online_cpu_count: None,
            cpu_quota_millicpus: None,
            memory_octets: Some(8 << 30),
            kernel: "Linux 6.18".to_owned(),
        },
        settings,
        found,
        tasks,
    }
}

fn survives_and_refuses<S>(plan: &Plan<S>)
where
    S: Settings + Clone + PartialEq + Debug,
    S::Found: Clone + PartialEq + Debug + DeserializeOwned,
{
    let text = plan.to_json();
    assert_eq!(Plan::<S>::from_json(&text).unwrap(), *plan);
    assert_eq!(Paper::of_plan(&text).unwrap(), S::PAPER);
    let error = |text: &str| Plan::<S>::from_json(text).unwrap_err().to_string();
    assert!(error(&text.replace("study/2", "study/9")).contains("authentick-study/9"));
    assert!(error(&text.replace("\"settings\"", "\"set\"")).contains("missing field `settings`"));
    assert!(error(&text.replace("\"quick\"", "\"fast\"")).contains("missing field `quick`"));
    assert!(error("{").contains("not a study's plan"));
    assert!(error(&text.replacen("run-", "../run-", 1)).contains("not the name of a file in this folder"));
    for other in Paper::ALL.into_iter().filter(|other| *other != S::PAPER) {
        let named = |paper: Paper| format!("\"paper\": \"{}\"", paper.name());
        let other_text = text.replace(&named(S::PAPER), &named(other));
        assert_eq!(error(&other_text), format!("paper: this is a study of {:?}", other.name()));
    }
    let unknown = text.replace(&format!("{:?}", S::PAPER.name()), "\"cake\"");
    assert!(error(&unknown).contains("unknown variant `cake`"));
}

#[test]
fn plans_survive_their_files_and_wrong_ones_are_refused_with_the_reason() {
    survives_and_refuses(&antp::tests::plan());
    survives_and_refuses(&field::tests::plan());
    survives_and_refuses(&ntp_mac::tests::plan());
    survives_and_refuses(&nts::tests::plan());
    survives_and_refuses(&request_threshold::plan::tests::plan());
}

/// A plan of the version before had neither tasks nor what became of them.
#[test]
fn plan_of_an_earlier_version_is_refused_by_its_format() {
    let text = antp::tests::plan().to_json().replace("study/2", "study/1");
    let message = Plan::<antp::Settings>::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("\"authentick-study/1\" is not known here"), "{message}");
}

/// As many records as a whole study has, of every study.
fn whole_page() -> String {
    let ladders = nts::Settings {
        quick: false,
        ladder_first_rps: 100,
        ladder_step_rps: 100,
        ladder_last_rps: 8_000,
        ..nts::tests::settings()
    };
    let mut records = nts::Records::default();
    for task in ladders.tasks() {
        match nts::Measure::of(&task.id).unwrap() {
            nts::Measure::Cell(_) => records.unloaded.push(nts::tests::record(&task.id)),
            nts::Measure::Scale(_) => records.scales.push(nts::tests::scale(&task.id)),
            nts::Measure::Rung(..) => records.rungs.push(nts::tests::rung(&task.id)),
            nts::Measure::Operations(_) => records.operations.push(nts::tests::operations(&task.id)),
            nts::Measure::Sessions(_) => records.sessions.push(nts::tests::sessions(&task.id)),
            nts::Measure::Rates(_) => records.rates.push(nts::tests::rates(&task.id)),
        }
    }
    for record in &mut records.unloaded {
        // A thousand rows, each other than the one before.
        for more in 2..1_000 {
            let (mut exchange, mut transfer) = (record.exchanges[0], record.transfers[0]);
            exchange.0[3] += more * 997;
            transfer.0[3] += more * 499;
            record.exchanges.push(exchange);
            record.plain.push(transfer);
            record.transfers.push(transfer);
        }
    }
    let nts_plan = plan_of(ladders.clone(), nts::Found::default(), ladders.tasks());
    let mut antp = antp::tests::record();
    let (trials, latencies) = (antp.trials.clone(), antp.latencies.clone());
    antp.trials.extend(trials.into_iter().cycle().take(60));
    antp.latencies.extend(latencies.iter().cycle().take(4 * latencies.len()).cloned());
    let mut field = field::tests::record();
    let trials = field.trials.clone();
    for round in 1..=20 {
        field.trials.extend(
            trials.iter().map(|trial| field::Trial { round: trial.round + 10 * round, ..trial.clone() }),
        );
    }
    let threshold_plan = request_threshold::plan::tests::plan();
    let rows = |count| vec![Some(crate::load::tests::record()); count];
    let threshold =
        request_threshold::Records { one_host: rows(6), several_hosts: rows(5), ..Default::default() };
    let mac_plan = ntp_mac::tests::plan();
    let parts = vec![
        (
            Paper::Mac,
            ntp_mac::report(&mac_plan, Some(&crate::mac::tests::record())),
            front::Stand::of(&mac_plan),
        ),
        (
            Paper::Threshold,
            request_threshold::report(&threshold_plan, &threshold),
            front::Stand::of(&threshold_plan),
        ),
        (Paper::Nts, nts::report(&nts_plan, &records), front::Stand::of(&nts_plan)),
        (Paper::Field, field::report(&field), front::Stand::of(&field::tests::plan())),
        (
            Paper::Antp,
            antp::report_on(&antp::tests::plan().tasks, &antp),
            front::Stand::of(&antp::tests::plan()),
        ),
    ];
    let stands: Vec<front::Stand> =
        parts.iter().map(|(_, report, stand)| stand.clone().judged(report)).collect();
    let front = front::front(&stands, Some(&field));
    let files = |paper: Paper| (0..60).map(move |number| format!("run-{}-{number}.json", paper.name()));
    let parts = parts.into_iter().map(|(paper, report, _)| (paper.name(), report.beside(files(paper))));
    crate::Joined::new("All", front, parts.collect()).page()
}

#[test]
fn page_of_every_whole_study_is_whole_and_at_most_two_megabytes() {
    let start = std::time::Instant::now();
    let page = whole_page();
    println!("{} octets, {:?} with the records made for it", page.len(), start.elapsed());
    crate::render::page::assert_whole(&page);
    assert!(page.len() <= 2_000_000, "{} octets", page.len());
    assert_eq!(page.matches("class=\"choice choice-0\"").count(), 12 + 3 + 2 + 2 + 2 + 1 + 2);
}
