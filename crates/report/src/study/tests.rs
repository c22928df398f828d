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
