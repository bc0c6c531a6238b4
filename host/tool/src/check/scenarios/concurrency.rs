//! What the backend info declares: execution on any thread, batches that overlap.

use crate::check::element::first_difference;
use crate::check::execute::{ExecutedBatch, execute_one, on_this_thread};
use crate::check::kit::Kit;
use crate::check::verdict::ScenarioVerdict;
use std::sync::Barrier;
use trtserver_plugin_testkit::{Instance, Response};

/// Overlapping batches, at most.
const MOST: u32 = 4;

pub fn any_thread(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let reference = kit.reference.clone();
    let work = |instance: &Instance| -> Result<bool, String> {
        if !instance.any_thread() {
            return Ok(false);
        }
        for _ in 0..3 {
            let executed = std::thread::scope(|scope| {
                let work = || on_this_thread(instance, plan.request(1, 3, 0));
                scope.spawn(work).join().map_err(|_| "the check panicked".to_owned())
            })?;
            as_expected(&executed, reference.as_ref())?;
            let own = execute_one(
                instance,
                plan.request(1, 3, 0),
                "on the instance's thread, between others",
            );
            as_expected(&own, reference.as_ref())?;
        }
        Ok(true)
    };
    match kit.with_instance(work).and_then(|r| r) {
        Err(why) => ScenarioVerdict::Broken(why),
        Ok(true) => ScenarioVerdict::kept(),
        Ok(false) => {
            ScenarioVerdict::NotApplicable("the backend does not declare ANY_THREAD".to_owned())
        }
    }
}

pub fn in_flight(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let steady = kit.reference.is_some();
    let work = |instance: &Instance| -> Result<u32, String> {
        let n = instance.max_in_flight().min(MOST);
        if n < 2 {
            return Ok(n);
        }
        let alone: Vec<Response> = (0..n as usize)
            .map(|seed| execute_one(instance, plan.request(1, 3, seed), "").only())
            .collect::<Result<_, _>>()?;
        let begin = Barrier::new(n as usize);
        std::thread::scope(|scope| {
            let (plan, begin) = (&plan, &begin);
            let batches: Vec<_> = alone
                .iter()
                .enumerate()
                .map(|(seed, expected)| {
                    scope.spawn(move || {
                        begin.wait();
                        let what = format!("of {n} batches that overlap");
                        let executed = execute_one(instance, plan.request(1, 3, seed), &what);
                        as_expected(&executed, steady.then_some(expected))
                    })
                })
                .collect();
            batches.into_iter().try_for_each(|batch| {
                batch.join().unwrap_or_else(|_| Err("the check panicked".to_owned()))
            })
        })?;
        Ok(n)
    };
    match kit.with_instance(work).and_then(|r| r) {
        Err(why) => ScenarioVerdict::Broken(why),
        Ok(n) if n < 2 => ScenarioVerdict::NotApplicable("its max_in_flight is 1".to_owned()),
        Ok(n) => ScenarioVerdict::Kept(format!("{n} batches at once")),
    }
}

fn as_expected(executed: &ExecutedBatch, expected: Option<&Response>) -> Result<(), String> {
    let found = executed.response(0)?;
    match expected.and_then(|expected| first_difference(expected, found)) {
        Some(difference) => Err(executed.fault(0, format!("{difference}, as alone"))),
        None => Ok(()),
    }
}
