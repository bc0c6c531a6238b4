//! An open instance: batches laid out, executed, and everything about them looked at.

use super::view::{CallSpec, Lay, held, hold};
use super::{Model, close_scope};
use crate::plugin::descriptors::InstanceHold;
use crate::tool::check::child::{breach, give_up, patience, seen};
use crate::tool::check::host::{Answer, Batch as Seen, Call as Watched, Failure, HOST, release};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;
use trtserver_plugin_api::abi::request::{Batch, Request};
use trtserver_plugin_api::abi::types::{self, InstanceHandle};

/// An open instance, on the thread that opened it.
pub struct Instance<'m> {
    pub model: &'m Model<'m>,
    pub handle: *mut InstanceHandle,
    /// What its description points at.
    pub(super) _hold: InstanceHold,
    pub(super) scope: usize,
}

/// What became of a call.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub answers: Vec<Answer>,
    pub end: Result<(), Failure>,
    pub missing: Option<String>,
}

impl Outcome {
    /// The one complete answer, or in words what came instead.
    pub fn answer(&self) -> Result<&Answer, String> {
        match (&self.end, &self.missing, self.answers.as_slice()) {
            (Err(e), ..) => Err(format!("it ended with an error: {}", e.text)),
            (_, Some(missing), _) => Err(format!("its answer lacks {missing}")),
            (_, _, []) => Err("it ended without an answer".to_owned()),
            (_, _, [first, ..]) => Ok(first),
        }
    }
}

static BATCHES: AtomicU64 = AtomicU64::new(1);

/// Lets another thread see what is being executed: handles of replies and words of cancellation.
pub type Meanwhile<'a> = &'a (dyn Fn(&[(u64, Arc<AtomicU32>)]) + Sync);

impl Instance<'_> {
    pub fn execute(&mut self, calls: &[CallSpec]) -> Vec<Outcome> {
        self.run(calls, Lay::Ordinary, None)
    }

    /// One batch, to the end of its last call.
    pub fn run(
        &mut self,
        specs: &[CallSpec],
        lay: Lay,
        meanwhile: Option<Meanwhile<'_>>,
    ) -> Vec<Outcome> {
        let plan = &self.model.plan;
        let mut ids = Vec::new();
        for (at, spec) in specs.iter().enumerate() {
            let mut state = HOST.lock();
            let id = state.id();
            let label = match specs.len() {
                1 => "the call".to_owned(),
                n => format!("call {} of {n}", at + 1),
            };
            let wanted = spec.wanted.iter().map(|i| plan.signature.outputs[*i].name.to_string());
            let call = Watched {
                label,
                rows: spec.rows,
                wanted: wanted.collect(),
                signature: Arc::clone(&plan.signature),
                lenient: spec.lenient,
                released: false,
                retained: 0,
                building: None,
                answers: Vec::new(),
                end: None,
                returned: false,
                missing: None,
            };
            state.calls.insert(id, call);
            held().insert(id, hold(plan, spec, id, self.model.plugin.align, lay));
            ids.push(id);
        }
        let (views, words): (Vec<*const Request>, Vec<(u64, Arc<AtomicU32>)>) = {
            let held = held();
            let of = |id: &u64| {
                held.get(id).map(|h| (&raw const *h.call, (*id, Arc::clone(&h.cancelled))))
            };
            ids.iter().filter_map(of).unzip()
        };
        let mut batch = Box::new(Batch {
            size: size_of::<Batch>() as u64,
            id: BATCHES.fetch_add(1, Ordering::Relaxed),
            n_requests: views.len() as u32,
            rows: specs.iter().map(|s| s.rows).sum(),
            requests: views.as_ptr(),
            exec_start_ns: 0,
            compute_start_ns: 0,
            compute_end_ns: 0,
            exec_end_ns: 0,
            reserved: [0; 4],
        });
        let address = (&raw const *batch).addr();
        HOST.lock().batches.insert(
            address,
            Seen {
                calls: ids.clone(),
                running: true,
                scattered: Vec::new(),
                scatter_begun: false,
                gathered: HashMap::new(),
            },
        );
        let (table, handle) = (self.model.plugin.table, self.handle);
        let error = std::thread::scope(|scope| {
            if let Some(meanwhile) = meanwhile {
                scope.spawn(move || meanwhile(&words));
            }
            // SAFETY: the batch and all it points at live until the calls are over; one execute at a time.
            unsafe { (table.execute)(handle, &mut *batch) }
        });
        self.settle(address, &ids, error)
    }

    fn settle(&self, batch: usize, ids: &[u64], error: *mut types::Error) -> Vec<Outcome> {
        let mut state = HOST.lock();
        let refused = state.take_error(error, "execute").err();
        if let Some(seen_batch) = state.batches.remove(&batch) {
            for (_, (block, was)) in seen_batch.gathered {
                if block.copy() != was || block.overrun().is_some() {
                    breach("input.unchanged", "the block of a gathered input was written to");
                }
            }
            for scattered in seen_batch.scattered {
                state.finish(&scattered.name, scattered.made);
            }
        }
        for id in ids {
            let Some(call) = state.calls.get_mut(id) else { continue };
            call.returned = true;
            let label = call.label.clone();
            let forgotten = if call.retained == 0 { call.building.take() } else { None };
            if let Some(refused) = &refused {
                seen("call.refused");
                if call.end.is_some()
                    || call.released
                    || call.retained > 0
                    || !call.answers.is_empty()
                {
                    let text = format!(
                        "execute failed ('{}') after it had begun to answer {label}",
                        refused.text
                    );
                    breach("call.refused", text);
                }
                call.retained = 0;
                call.end.get_or_insert_with(|| Err(refused.clone()));
            } else if call.retained == 0 {
                if call.end.is_none() {
                    let text = format!(
                        "execute returned success and {label} was neither answered nor kept"
                    );
                    breach("call.once", &text);
                    call.end = Some(Err(Failure { code: types::code::INTERNAL, text }));
                }
                if !call.released {
                    breach(
                        "call.release",
                        format!(
                            "execute returned success and the request of {label} was not released"
                        ),
                    );
                    call.released = true;
                }
            }
            if let Some(building) = forgotten {
                breach(
                    "host.responses",
                    format!("a response of {label} was neither sent nor dropped"),
                );
                state.responses.remove(&building.id);
                state.drop_building(building);
            }
        }
        let waited = patience();
        let deadline = Instant::now() + waited;
        let open =
            |c: &Watched| c.end.is_none() || c.retained > 0 || !c.released && refused.is_none();
        while ids.iter().any(|id| state.calls.get(id).is_some_and(open)) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                give_up();
                break;
            }
            let wait = HOST.changed.wait_timeout(state, left);
            state = wait.0;
        }
        let mut outcomes = Vec::new();
        for id in ids {
            let Some(call) = state.calls.remove(id) else { continue };
            let seconds = waited.as_secs_f64();
            let label = &call.label;
            if call.end.is_none() {
                breach("call.once", format!("{label} was kept and not ended within {seconds} s"));
            } else if call.retained > 0 {
                breach(
                    "host.replies",
                    format!(
                        "the reply of {label} was retained and not released within {seconds} s"
                    ),
                );
            } else if !call.released && refused.is_none() {
                breach(
                    "call.release",
                    format!("the request of {label} was not released within {seconds} s"),
                );
            }
            let never =
                || Err(Failure { code: types::code::INTERNAL, text: "it never ended".into() });
            let (answers, end, missing) =
                (call.answers, call.end.unwrap_or_else(never), call.missing);
            outcomes.push(Outcome { answers, end, missing });
        }
        let done = if state.hold_releases { Vec::new() } else { std::mem::take(&mut state.done) };
        drop(state);
        release(done);
        for id in ids {
            if let Some(held) = held().remove(id) {
                held.look();
            }
        }
        outcomes
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        // SAFETY: on the instance's thread, with nothing executing.
        unsafe { (self.model.plugin.table.instance_close)(self.handle) };
        close_scope(self.scope);
    }
}
