//! Cancelled requests and passed deadlines.

use super::requests::with_instance;
use crate::tool::check::kit::Kit;
use crate::tool::check::model::Plan;
use crate::tool::check::verdict::Verdict;
use std::time::{Duration, Instant};
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::{Instance, Layout, Outcome, Request, now_ns};

/// The request succeeded, or failed with one of these codes.
fn allowed(outcome: &Outcome, codes: &[u32]) -> Result<(), String> {
    match &outcome.result {
        Ok(()) => Ok(()),
        Err(e) if codes.contains(&e.code) => Ok(()),
        Err(e) => Err(format!(
            "the request failed with code {} ('{}') instead of CANCELLED",
            e.code, e.text
        )),
    }
}

fn run(
    kit: &mut Kit,
    codes: &[u32],
    work: impl FnOnce(&Instance, &Plan) -> Vec<Outcome>,
) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let begin = Instant::now();
    let outcomes = with_instance(kit, |instance| work(instance, &plan));
    let checked = outcomes.and_then(|all| all.iter().try_for_each(|o| allowed(o, codes)));
    match checked {
        Err(why) => Verdict::Broken(why),
        Ok(()) => Verdict::Kept(format!("within {} ms", begin.elapsed().as_millis())),
    }
}

pub fn before(kit: &mut Kit) -> Verdict {
    run(kit, &[code::CANCELLED], |instance, plan| {
        instance.execute(&[plan.request(1, 3, 0).cancelled()])
    })
}

pub fn during(kit: &mut Kit) -> Verdict {
    run(kit, &[code::CANCELLED], |instance, plan| {
        let mut outcomes = Vec::new();
        for delay in [0, 50, 200, 1000, 5000] {
            let request = plan.request(1, 3, 0);
            outcomes.extend(instance.execute_with(&[request], Layout::Ordinary, |in_flight| {
                std::thread::sleep(Duration::from_micros(delay));
                in_flight.cancel();
            }));
        }
        outcomes
    })
}

pub fn deadline(kit: &mut Kit) -> Verdict {
    run(kit, &[code::CANCELLED, code::DEADLINE], |instance, plan| {
        let deadline_ns = now_ns().saturating_sub(1_000_000_000).max(1);
        instance.execute(&[Request { deadline_ns, ..plan.request(1, 3, 0) }])
    })
}
