//! Plans and orders in words, for the log of an agent's operator.

use crate::plan::{Order, Plan, Scheme};

/// What a coordinator is about to order, and to which target.
pub(super) fn plan_in_words(plan: &Plan) -> String {
    let what = match plan.scheme {
        Scheme::Plain => "plain NTP",
        Scheme::Mac => "NTP with a MAC",
        Scheme::Nts => "NTS",
        Scheme::Ke => "key exchanges",
        Scheme::Mix { .. } => "key exchanges with transfers",
        Scheme::AntpNegotiate => "negotiations of ANTP",
        Scheme::AntpExchange => "key exchanges of ANTP",
        Scheme::Antp => "ANTP",
        Scheme::AntpFull => "whole runs of ANTP",
    };
    let target = match plan.scheme {
        Scheme::Ke => plan.ke.to_string(),
        scheme if scheme.nature().exchanges_keys => format!("{}, with keys from {}", plan.ntp, plan.ke),
        _ => plan.ntp.to_string(),
    };
    format!("plans {what} with {} clients against {target}", plan.clients)
}

/// What is offered in a step.
pub(super) fn order_in_words(order: &Order) -> String {
    let offered = match order.rate_rps {
        Some(rate) => format!("{rate} operations a second"),
        None => "a closed loop".to_owned(),
    };
    let beside = match order.background_rps > 0.0 {
        true => format!(" beside {} in the background", order.background_rps),
        false => String::new(),
    };
    format!("{offered}{beside} for {} s", order.duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{order, plan};
    use super::*;

    #[test]
    fn operator_reads_words() {
        let two = Order { background_rps: 20.0, ..order(1500.0, 2.5) };
        assert_eq!(order_in_words(&two), "1500 operations a second beside 20 in the background for 2.5 s");
        let closed = Order { rate_rps: None, ..order(0.0, 3.0) };
        assert_eq!(order_in_words(&closed), "a closed loop for 3 s");
        let nts = "plans NTS with 9 clients against 127.0.0.1:123, with keys from 127.0.0.1:4460";
        assert_eq!(plan_in_words(&plan()), nts);
        let plain = Plan { scheme: Scheme::Plain, ..plan() };
        assert_eq!(plan_in_words(&plain), "plans plain NTP with 9 clients against 127.0.0.1:123");
    }
}
