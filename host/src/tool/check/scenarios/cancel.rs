//! Calls that nobody waits for any more.

use super::Verdict;
use super::calls::with_instance;
use crate::plugin::library::table;
use crate::tool::check::bench::{CallSpec, Instance, Lay, Outcome};
use crate::tool::check::host::{HOST, responder_handle};
use crate::tool::check::kit::Kit;
use crate::tool::check::model::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trtserver_plugin_api::abi::types::code;

/// Answered, or ended with one of these codes.
fn allowed(outcome: &Outcome, codes: &[u32]) -> Result<(), String> {
    match &outcome.end {
        Ok(()) => Ok(()),
        Err(e) if codes.contains(&e.code) => Ok(()),
        Err(e) => Err(format!(
            "it ended with code {} ('{}'), which does not say that it was cancelled",
            e.code, e.text
        )),
    }
}

fn run(
    kit: &mut Kit,
    codes: &[u32],
    work: impl FnOnce(&mut Instance<'_>, &Plan) -> Vec<Outcome> + Send,
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
        instance.execute(&[CallSpec { cancelled: true, ..plan.call(1, 3, 0) }])
    })
}

pub fn during(kit: &mut Kit) -> Verdict {
    let cancel = table::cancel(kit.table).map(|e| e.cancel);
    run(kit, &[code::CANCELLED], |instance, plan| {
        let mut outcomes = Vec::new();
        let handle = instance.handle.expose_provenance();
        for delay in [0, 50, 200, 1000, 5000] {
            let nudge = |calls: &[(u64, Arc<AtomicU32>)]| {
                std::thread::sleep(Duration::from_micros(delay));
                for (id, word) in calls {
                    word.store(1, Ordering::Release);
                    // Once a call has ended its reply is nobody's.
                    let open = HOST.lock().calls.get(id).is_some_and(|c| c.end.is_none());
                    if let Some(cancel) = cancel.filter(|_| open) {
                        let instance = std::ptr::with_exposed_provenance_mut(handle);
                        // SAFETY: the instance is open: this thread ends before `execute` is over.
                        unsafe { cancel(instance, responder_handle(*id)) };
                    }
                }
            };
            outcomes.extend(instance.run(&[plan.call(1, 3, 0)], Lay::Ordinary, Some(&nudge)));
        }
        outcomes
    })
}

pub fn deadline(kit: &mut Kit) -> Verdict {
    run(kit, &[code::CANCELLED, code::DEADLINE], |instance, plan| {
        let past = crate::clock::now_ns().saturating_sub(1_000_000_000).max(1);
        instance.execute(&[CallSpec { deadline_ns: past, ..plan.call(1, 3, 0) }])
    })
}
