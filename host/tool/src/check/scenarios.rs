//! The scenarios: each has a promise of its own; the standing promises are checked in all.

mod batch;
mod cancel;
mod concurrency;
mod lifecycle;
mod requests;

use super::kit::Kit;
use super::verdict::ScenarioVerdict;

pub struct Scenario {
    pub id: &'static str,
    /// Scenarios that must have succeeded.
    pub needs: &'static [&'static str],
    pub run: fn(&mut Kit) -> ScenarioVerdict,
}

const OPEN: &[&str] = &["backend.open"];
const MODEL: &[&str] = &["model.open"];
const REQUEST: &[&str] = &["request.single"];

pub const SCENARIOS: &[Scenario] = &[
    Scenario { id: "backend.open", needs: &[], run: lifecycle::backend_open },
    Scenario { id: "backend.settings", needs: OPEN, run: lifecycle::backend_settings },
    Scenario { id: "model.open", needs: OPEN, run: lifecycle::model_open },
    Scenario { id: "request.single", needs: MODEL, run: requests::single_request },
    Scenario { id: "backend.two_names", needs: OPEN, run: lifecycle::two_names },
    Scenario { id: "model.broken_config", needs: OPEN, run: lifecycle::broken_config },
    Scenario { id: "model.complete", needs: OPEN, run: lifecycle::complete_config },
    Scenario { id: "model.probe", needs: &[], run: lifecycle::probe_model },
    Scenario { id: "model.together", needs: REQUEST, run: lifecycle::open_together },
    Scenario { id: "instance.many", needs: REQUEST, run: lifecycle::many_instances },
    Scenario { id: "instance.any_thread", needs: REQUEST, run: concurrency::any_thread },
    Scenario { id: "instance.in_flight", needs: REQUEST, run: concurrency::in_flight },
    Scenario { id: "request.batch", needs: REQUEST, run: batch::batched_requests },
    Scenario { id: "request.empty", needs: REQUEST, run: requests::empty_request },
    Scenario { id: "request.types", needs: REQUEST, run: requests::data_types },
    Scenario { id: "request.misfit", needs: REQUEST, run: requests::misfit_requests },
    Scenario { id: "input.protected", needs: REQUEST, run: requests::protected_inputs },
    Scenario { id: "input.aligned", needs: REQUEST, run: requests::aligned_inputs },
    Scenario { id: "output.not_requested", needs: REQUEST, run: requests::not_requested },
    Scenario { id: "output.adopted", needs: REQUEST, run: requests::adopted_outputs },
    Scenario { id: "host.memory", needs: REQUEST, run: requests::output_memory },
    Scenario { id: "cancel.before", needs: REQUEST, run: cancel::cancel_before_execute },
    Scenario { id: "cancel.during", needs: REQUEST, run: cancel::cancel_during_execute },
    Scenario { id: "cancel.deadline", needs: REQUEST, run: cancel::pass_deadline },
    Scenario { id: "life.threads", needs: OPEN, run: lifecycle::thread_cleanup },
    Scenario { id: "life.process", needs: OPEN, run: lifecycle::process_state },
    Scenario { id: "life.cycles", needs: OPEN, run: lifecycle::open_close_cycles },
];

/// A scenario and all that it needs.
pub fn with_needs(id: &str) -> Vec<&'static str> {
    let mut all = Vec::new();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if let Some(found) = SCENARIOS.iter().find(|s| s.id == id) {
            all.push(found.id);
            open.extend(found.needs);
        }
    }
    all
}
