//! The scenarios: each has a promise of its own; the standing promises are checked in all.

mod batch;
mod cancel;
mod declared;
mod life;
mod requests;

use super::kit::Kit;
use super::verdict::Verdict;

pub struct Scenario {
    pub id: &'static str,
    /// Scenarios that must have succeeded.
    pub needs: &'static [&'static str],
    pub run: fn(&mut Kit) -> Verdict,
}

const OPEN: &[&str] = &["backend.open"];
const MODEL: &[&str] = &["model.open"];
const REQUEST: &[&str] = &["request.single"];

pub const SCENARIOS: &[Scenario] = &[
    Scenario { id: "backend.open", needs: &[], run: life::backend_open },
    Scenario { id: "backend.settings", needs: OPEN, run: life::settings },
    Scenario { id: "model.open", needs: OPEN, run: life::model_open },
    Scenario { id: "request.single", needs: MODEL, run: requests::single },
    Scenario { id: "backend.two_names", needs: OPEN, run: life::two_names },
    Scenario { id: "model.broken_config", needs: OPEN, run: life::broken_config },
    Scenario { id: "model.complete", needs: OPEN, run: life::complete },
    Scenario { id: "model.probe", needs: &[], run: life::probe },
    Scenario { id: "model.together", needs: REQUEST, run: life::together },
    Scenario { id: "instance.many", needs: REQUEST, run: life::many_instances },
    Scenario { id: "instance.any_thread", needs: REQUEST, run: declared::any_thread },
    Scenario { id: "instance.in_flight", needs: REQUEST, run: declared::in_flight },
    Scenario { id: "request.batch", needs: REQUEST, run: batch::batch },
    Scenario { id: "request.empty", needs: REQUEST, run: requests::empty },
    Scenario { id: "request.types", needs: REQUEST, run: requests::types },
    Scenario { id: "request.misfit", needs: REQUEST, run: requests::misfit },
    Scenario { id: "input.protected", needs: REQUEST, run: requests::protected },
    Scenario { id: "input.aligned", needs: REQUEST, run: requests::aligned },
    Scenario { id: "output.not_requested", needs: REQUEST, run: requests::not_requested },
    Scenario { id: "output.adopted", needs: REQUEST, run: requests::adopted },
    Scenario { id: "host.memory", needs: REQUEST, run: requests::memory },
    Scenario { id: "cancel.before", needs: REQUEST, run: cancel::before },
    Scenario { id: "cancel.during", needs: REQUEST, run: cancel::during },
    Scenario { id: "cancel.deadline", needs: REQUEST, run: cancel::deadline },
    Scenario { id: "life.threads", needs: OPEN, run: life::threads },
    Scenario { id: "life.process", needs: OPEN, run: life::process_state },
    Scenario { id: "life.cycles", needs: OPEN, run: life::cycles },
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
