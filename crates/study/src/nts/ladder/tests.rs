//! What steps offer.

use authentick_report::study::nts::{Store, measured_of};

use super::*;
use crate::nts::Nts;
use crate::paper::Paper;

fn settings() -> NtsSettings {
    Nts::default().plan().settings
}

fn scale(ladder: Ladder, capacity_rps: f64, factor: f64) -> ScaleRecord {
    let host = authentick_report::Host {
        cpu: String::new(),
        cpu_count: 2,
        online_cpu_count: None,
        cpu_quota_millicpus: None,
        memory_octets: None,
        kernel: String::new(),
    };
    ScaleRecord {
        version: String::new(),
        commit: String::new(),
        command: String::new(),
        started_unix_s: 0,
        host,
        task: ladder.scale_id(),
        isolated: true,
        memcached: None,
        whole_core_rps: Some(2400.0),
        generator_rps: 3200.0,
        descriptors: Some(20_000),
        quota_share: None,
        capacity_rps,
        factor,
    }
}

#[test]
fn rates_to_scale_are_the_paper_s_times_the_factor_and_the_background_has_the_rest() {
    let scale = scale(Ladder::ToScale, 200.0, 0.1);
    for load in [100, 500, 600, 2000, 8000] {
        let offer = Offer::of(Ladder::ToScale, Rung::Load(load), &scale, &settings());
        assert_eq!(offer.load_rps, Some(f64::from(load)));
        assert_eq!(offer.measured_rps, f64::from(measured_of(load)) * 0.1);
        let whole = offer.measured_rps + offer.background_rps;
        assert!((whole - f64::from(load) * 0.1).abs() < 1e-9, "{offer:?}");
    }
    let alone = Offer::of(Ladder::ToScale, Rung::Unloaded, &scale, &settings());
    assert_eq!(alone, Offer { load_rps: None, measured_rps: 5.0, background_rps: 0.0 });
}

#[test]
fn last_step_on_a_whole_core_is_the_generator_s_limit() {
    let ladder = Ladder::WholeCore(Store::File);
    let scale = scale(ladder, 2400.0, 1.0);
    let offer = |number| Offer::of(ladder, Rung::Load(number), &scale, &settings());
    assert_eq!(offer(16).load_rps, Some(3200.0));
    assert_eq!(offer(8), Offer { load_rps: Some(1600.0), measured_rps: 100.0, background_rps: 1500.0 });
    let little = ScaleRecord { generator_rps: 800.0, ..scale };
    let offer = Offer::of(ladder, Rung::Load(1), &little, &settings());
    assert_eq!(offer, Offer { load_rps: Some(50.0), measured_rps: 50.0, background_rps: 0.0 });
}

#[test]
fn clients_do_for_exchanges_that_hang_until_the_deadline() {
    let settings = settings();
    assert!(client_count(100.0, &settings) >= 100.0 * settings.deadline_seconds);
    let short = NtsSettings { step_seconds: 1.0, ..settings };
    assert!(client_count(100.0, &short) < 300.0);
    assert_eq!(client_count_max(Some(20_000)), 9_872.0);
}
