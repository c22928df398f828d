//! `authentick plan`: from what clients do and what a server was measured to hold to how many of them one server takes.

use authentick_report::pool::{Demand, note, text};
use serde_json::json;

use crate::args::{Plan, PlanAntp, PlanVerb};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &Plan) -> Result<Exit, Failure> {
    match &arguments.verb {
        PlanVerb::Antp(arguments) => antp(arguments),
    }
}

fn antp(arguments: &PlanAntp) -> Result<Exit, Failure> {
    let plan = Demand {
        time_rps: arguments.time_rate,
        exchange_rps: arguments.exchange_rate,
        negotiation_rps: arguments.negotiation_rate,
        poll_seconds: arguments.poll.as_secs_f64(),
        rekey_seconds: arguments.rekey.as_secs_f64(),
    };
    let pool = plan.pool().map_err(|problem| Exit::Usage.because(problem.to_string()))?;
    output::result(&match arguments.json {
        true => json!({ "plan": plan, "pool": pool, "note": note() }).to_string(),
        false => text(&plan, &pool),
    });
    Ok(Exit::Done)
}
