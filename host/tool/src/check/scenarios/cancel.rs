//! Cancelled requests and passed deadlines.

use crate::check::execute::{ExecutedBatch, execute_one, execute_with};
use crate::check::kit::Kit;
use crate::check::model::ModelPlan;
use crate::check::verdict::ScenarioVerdict;
use std::time::{Duration, Instant};
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::{Instance, Layout, Request, now_ns};

/// The request succeeded, or failed with one of these codes.
fn allowed(executed: &ExecutedBatch, codes: &[u32]) -> Result<(), String> {
    match executed.outcomes.first().map(|outcome| &outcome.result) {
        Some(Err(e)) if !codes.contains(&e.code) => {
            let expected =
                if codes.contains(&code::DEADLINE) { "CANCELLED or DEADLINE" } else { "CANCELLED" };
            let (code, text) = (e.code, &e.text);
            Err(executed
                .fault(0, format!("it failed with code {code} ('{text}'), expected {expected}")))
        }
        _ => Ok(()),
    }
}

fn run(
    kit: &mut Kit,
    codes: &[u32],
    work: impl FnOnce(&Instance, &ModelPlan) -> Vec<ExecutedBatch>,
) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let begin = Instant::now();
    let executed = kit.with_instance(|instance| work(instance, &plan));
    let checked = executed.and_then(|all| all.iter().try_for_each(|e| allowed(e, codes)));
    match checked {
        Err(why) => ScenarioVerdict::Broken(why),
        Ok(()) => ScenarioVerdict::Kept(format!("within {} ms", begin.elapsed().as_millis())),
    }
}

pub fn cancel_before_execute(kit: &mut Kit) -> ScenarioVerdict {
    run(kit, &[code::CANCELLED], |instance, plan| {
        vec![execute_one(instance, plan.request(1, 3, 0).cancelled(), "cancelled before")]
    })
}

pub fn cancel_during_execute(kit: &mut Kit) -> ScenarioVerdict {
    run(kit, &[code::CANCELLED], |instance, plan| {
        let cancel_after = |delay| {
            let (request, what) = (plan.request(1, 3, 0), format!("cancelled after {delay} µs"));
            execute_with(instance, &[request], Layout::Ordinary, &what, |in_flight| {
                std::thread::sleep(Duration::from_micros(delay));
                in_flight.cancel();
            })
        };
        [0, 50, 200, 1000, 5000].map(cancel_after).into()
    })
}

pub fn pass_deadline(kit: &mut Kit) -> ScenarioVerdict {
    run(kit, &[code::CANCELLED, code::DEADLINE], |instance, plan| {
        let deadline_ns = now_ns().saturating_sub(1_000_000_000).max(1);
        let request = Request { deadline_ns, ..plan.request(1, 3, 0) };
        vec![execute_one(instance, request, "whose deadline passed a second ago")]
    })
}
