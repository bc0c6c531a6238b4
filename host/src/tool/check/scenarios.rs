//! The scenarios: each has its own promise, and in each the standing ones are watched.

mod calls; // answers, batches, wrong calls
mod cancel; // cancellation and deadlines
mod life; // files, backends, models, instances; opening and closing

use super::kit::Kit;

/// What a scenario found.
pub enum Verdict {
    /// With a remark, or nothing.
    Kept(String),
    Broken(String),
    NotApplicable(String),
}

impl Verdict {
    pub fn kept() -> Self {
        Self::Kept(String::new())
    }

    pub fn of(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Broken, |()| Self::kept())
    }
}

pub struct Scenario {
    pub id: &'static str,
    /// Those that must have ended well.
    pub needs: &'static [&'static str],
    pub run: fn(&mut Kit) -> Verdict,
}

const OPEN: &[&str] = &["backend.open"];
const MODEL: &[&str] = &["model.open"];
const CALL: &[&str] = &["call.single"];

pub const SCENARIOS: &[Scenario] = &[
    Scenario { id: "backend.open", needs: &[], run: life::backend_open },
    Scenario { id: "backend.settings", needs: OPEN, run: life::settings },
    Scenario { id: "model.open", needs: OPEN, run: life::model_open },
    Scenario { id: "call.single", needs: MODEL, run: calls::single },
    Scenario { id: "backend.two_names", needs: OPEN, run: life::two_names },
    Scenario { id: "model.broken_config", needs: OPEN, run: life::broken_config },
    Scenario { id: "model.complete", needs: OPEN, run: life::complete },
    Scenario { id: "model.together", needs: CALL, run: life::together },
    Scenario { id: "instance.many", needs: CALL, run: life::many_instances },
    Scenario { id: "call.batch", needs: CALL, run: calls::batch },
    Scenario { id: "call.empty", needs: CALL, run: calls::empty },
    Scenario { id: "call.types", needs: CALL, run: calls::types },
    Scenario { id: "call.misfit", needs: CALL, run: calls::misfit },
    Scenario { id: "input.protected", needs: CALL, run: calls::protected },
    Scenario { id: "input.aligned", needs: CALL, run: calls::aligned },
    Scenario { id: "output.not_requested", needs: CALL, run: calls::not_requested },
    Scenario { id: "output.adopted", needs: CALL, run: calls::adopted },
    Scenario { id: "host.memory", needs: CALL, run: calls::memory },
    Scenario { id: "cancel.before", needs: CALL, run: cancel::before },
    Scenario { id: "cancel.during", needs: CALL, run: cancel::during },
    Scenario { id: "cancel.deadline", needs: CALL, run: cancel::deadline },
    Scenario { id: "life.threads", needs: OPEN, run: life::threads },
    Scenario { id: "life.process", needs: OPEN, run: life::process_state },
    Scenario { id: "life.cycles", needs: OPEN, run: life::cycles },
];

/// A scenario and all that must have ended well before it.
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
