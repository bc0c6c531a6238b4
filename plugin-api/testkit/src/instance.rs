//! Instances: executes batches on the instance's thread, and checks what became of each request.

use crate::backend::{OpenModel, find_extension, take_error};
use crate::host::{
    BatchRecord, CHANGED, Failure, RequestRecord, Response, ScopeId, call_releases, lock_state,
    responder_handle,
};
use crate::model::{InstanceDescriptor, InstanceSpec};
use crate::report::{report_exercised, report_violation, set_timed_out, wait_limit};
use crate::request::{HeldRequest, Layout, Request, held_requests};
use crate::text::literal_str;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::abi::extensions::{BATCH_SIZES_VERSION, BatchSizesExtension};
use trtserver_plugin_api::abi::request::{Batch, Request as View};
use trtserver_plugin_api::abi::types::{self, InstanceHandle};

/// What became of a request.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order in which they were sent.
    pub responses: Vec<Response>,
    /// How the request ended.
    pub result: Result<(), Failure>,
    /// A requested output that a response lacked.
    pub missing: Option<String>,
}

impl Outcome {
    /// The first response, if the request succeeded and no requested output is missing.
    ///
    /// # Errors
    /// What happened instead.
    pub fn response(&self) -> Result<&Response, String> {
        match (&self.result, &self.missing, self.responses.as_slice()) {
            (Err(e), ..) => Err(format!("the request failed: {}", e.text)),
            (_, Some(missing), _) => Err(format!("the response lacks {missing}")),
            (_, _, []) => Err("the request was finished without a response".to_owned()),
            (_, _, [first, ..]) => Ok(first),
        }
    }
}

/// Requests that are being executed.
pub struct InFlight<'a> {
    instance: &'a Instance,
    requests: Vec<(u64, Arc<AtomicU32>)>,
}

impl InFlight<'_> {
    /// Cancels all requests as the server does: sets their flags, then notifies the backend.
    pub fn cancel(&self) {
        for (id, flag) in &self.requests {
            flag.store(1, Ordering::Release);
            let open = lock_state().requests.get(id).is_some_and(|r| r.result.is_none());
            if let Some(extension) = self.instance.model.backend.cancel.filter(|_| open) {
                // SAFETY: the instance is open: it is borrowed.
                unsafe { (extension.cancel)(self.instance.handle, responder_handle(*id)) };
            }
        }
    }
}

/// A pointer for another thread.
struct SendPointer<T>(*mut T);

// SAFETY: the receiver uses the pointer while the sender waits for it, or as the interface allows.
unsafe impl<T> Send for SendPointer<T> {}

type Job = Box<dyn FnOnce(*mut InstanceHandle) + Send>;

/// An open instance with its thread. Closed when it is dropped.
pub struct Instance {
    model: Arc<OpenModel>,
    handle: *mut InstanceHandle,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    turns: BatchTurns,
}

/// Batches of an instance: one executes at a time, and at most `max_in_flight` are not finished.
#[derive(Default)]
struct BatchTurns {
    state: Mutex<TurnState>,
    changed: Condvar,
}

#[derive(Default)]
struct TurnState {
    executing: bool,
    unfinished: u32,
}

/// The right to execute a batch; ends when the batch is finished.
struct BatchTurn<'a> {
    turns: &'a BatchTurns,
    executing: bool,
}

impl BatchTurns {
    fn take(&self, max_in_flight: u32) -> BatchTurn<'_> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.executing || state.unfinished >= max_in_flight {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.executing = true;
        state.unfinished += 1;
        BatchTurn { turns: self, executing: true }
    }

    fn update(&self, change: impl FnOnce(&mut TurnState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

impl BatchTurn<'_> {
    /// `execute` has returned.
    fn executed(&mut self) {
        self.executing = false;
        self.turns.update(|state| state.executing = false);
    }
}

impl Drop for BatchTurn<'_> {
    fn drop(&mut self) {
        let executing = self.executing;
        self.turns.update(|state| {
            state.executing &= !executing;
            state.unfinished -= 1;
        });
    }
}

// SAFETY: the handle is used on the instance's thread, but for `cancel`, which any thread may call.
unsafe impl Send for Instance {}
// SAFETY: only the instance's thread passes the handle to the backend, except to `cancel`, which
// any thread may call at any time.
unsafe impl Sync for Instance {}

/// Instances open one at a time unless the backend allows more.
static OPENING: Mutex<()> = Mutex::new(());
static BATCHES: AtomicU64 = AtomicU64::new(1);

impl Instance {
    pub(crate) fn open(model: Arc<OpenModel>, spec: &InstanceSpec) -> Result<Self, Failure> {
        let name = format!("{}_{}", model.spec().name, spec.ordinal);
        let scope = ScopeId::open(format!("instance '{name}'"));
        let max_rows = model.spec().max_batch_size.max(1) as u32;
        let descriptor = InstanceDescriptor::new(spec, &name, max_rows, scope);
        let (jobs, inbox) = channel::<Job>();
        let (opened, result) = channel();
        let of_thread = model.clone();
        let body = move || {
            // The whole descriptor moves, not its pointer alone.
            let descriptor = descriptor;
            let table = of_thread.backend.table;
            let parallel = of_thread.backend.flags & backend_flags::PARALLEL_OPEN != 0;
            let one = (!parallel).then(|| OPENING.lock().unwrap_or_else(PoisonError::into_inner));
            let mut handle = null_mut();
            // SAFETY: the model is open; the descriptor lives until `instance_close`.
            let error = unsafe {
                (table.instance_open)(
                    of_thread.handle,
                    &raw const *descriptor.desc,
                    &raw mut handle,
                )
            };
            drop(one);
            let result = take_error(error, "instance_open");
            let failed = result.is_err();
            let _ = opened.send(result.map(|()| SendPointer(handle)));
            if !failed {
                inbox.iter().for_each(|job| job(handle));
                // SAFETY: on the instance's thread, with nothing executing; closed once.
                unsafe { (table.instance_close)(handle) };
            }
            scope.close();
        };
        let thread = std::thread::Builder::new().stack_size(model.backend.stack).spawn(body);
        let thread = thread.map_err(|e| Failure::internal(format!("no thread: {e}")))?;
        match result.recv() {
            Ok(Ok(SendPointer(handle))) => {
                let (jobs, thread, turns) = (Some(jobs), Some(thread), BatchTurns::default());
                Ok(Self { model, handle, jobs, thread, turns })
            }
            Ok(Err(failure)) => {
                let _ = thread.join();
                Err(failure)
            }
            Err(_) => Err(Failure::internal("the instance's thread panicked")),
        }
    }

    /// Executes the requests as one batch, and waits until all are finished.
    pub fn execute(&self, requests: &[Request]) -> Vec<Outcome> {
        self.execute_with(requests, Layout::Ordinary, |_| {})
    }

    /// The same with inputs placed by `layout`; `meanwhile` runs on this thread during the
    /// execution.
    pub fn execute_with(
        &self,
        requests: &[Request],
        layout: Layout,
        meanwhile: impl FnOnce(&InFlight<'_>),
    ) -> Vec<Outcome> {
        self.run(requests, layout, false, meanwhile)
    }

    /// Whether the backend declares that its instances execute on any thread.
    pub fn any_thread(&self) -> bool {
        self.model.backend.flags & backend_flags::ANY_THREAD != 0
    }

    /// Batches that the backend declares to accept before it has finished the first.
    pub fn max_in_flight(&self) -> u32 {
        self.model.backend.max_in_flight
    }

    /// Rows and time of a run of each size that the backend has prepared the instance for.
    pub fn batch_sizes(&self) -> Vec<(u32, u64)> {
        let table = self.model.backend.table;
        let name = literal_str(c"trts.batch_sizes");
        let Some(extension) =
            find_extension::<BatchSizesExtension>(table, name, BATCH_SIZES_VERSION)
        else {
            return Vec::new();
        };
        let (send, received) = channel();
        let job: Job = Box::new(move |handle| {
            let mut n = 0;
            // SAFETY: the instance is open, on its own thread; the list has this length and is
            // valid until the instance is closed.
            let sizes = unsafe {
                let list = (extension.batch_sizes)(handle, &raw mut n);
                if list.is_null() { &[] } else { std::slice::from_raw_parts(list, n as usize) }
            };
            let _ = send.send(sizes.iter().map(|size| (size.rows, size.run_ns)).collect());
        });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if sent { received.recv().unwrap_or_default() } else { Vec::new() }
    }

    /// As [`Instance::execute`], on this thread; for backends that declare
    /// [`Instance::any_thread`].
    ///
    /// # Panics
    /// The backend does not.
    pub fn execute_on_this_thread(&self, requests: &[Request]) -> Vec<Outcome> {
        assert!(self.any_thread(), "the backend executes on the instance's thread only");
        self.run(requests, Layout::Ordinary, true, |_| {})
    }

    fn run(
        &self,
        requests: &[Request],
        layout: Layout,
        on_this_thread: bool,
        meanwhile: impl FnOnce(&InFlight<'_>),
    ) -> Vec<Outcome> {
        let mut turn = self.turns.take(self.max_in_flight());
        let model = self.model.spec();
        let spec = Arc::new(model.clone());
        let mut ids = Vec::new();
        let mut views: Vec<*const View> = Vec::new();
        let mut flags = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let mut state = lock_state();
            let id = state.id();
            let label = match requests.len() {
                1 => "the request".to_owned(),
                n => format!("request {} of {n}", at + 1),
            };
            let record = RequestRecord {
                label,
                rows: request.batch_size,
                requested: request.requested_outputs.clone(),
                model: Arc::clone(&spec),
                unchecked: request.unchecked,
                released: false,
                detached: 0,
                open_response: None,
                responses: Vec::new(),
                result: None,
                returned: false,
                missing: None,
            };
            state.requests.insert(id, record);
            drop(state);
            let view = HeldRequest::new(model, request, id, self.model.backend.align, layout);
            if let Some(view) = view {
                views.push(&raw const *view.view);
                flags.push((id, view.cancelled.clone()));
                held_requests().insert(id, view);
                ids.push(id);
            }
        }
        let mut batch = Box::new(Batch {
            size: size_of::<Batch>() as u64,
            id: BATCHES.fetch_add(1, Ordering::Relaxed),
            n_requests: views.len() as u32,
            rows: requests.iter().map(|request| request.batch_size).sum(),
            requests: views.as_ptr(),
            exec_start_ns: 0,
            compute_start_ns: 0,
            compute_end_ns: 0,
            exec_end_ns: 0,
            reserved: [0; 4],
        });
        let address = (&raw const *batch).addr();
        let record = BatchRecord {
            requests: ids.clone(),
            scattered: Vec::new(),
            scatter_called: false,
            gathered: HashMap::new(),
        };
        lock_state().batches.insert(address, record);
        let (table, sent) = (self.model.backend.table, SendPointer(&raw mut *batch));
        let (done, result) = channel();
        let job: Job = Box::new(move |instance| {
            let SendPointer(batch) = { sent };
            // SAFETY: the batch and all it points at live until the requests are finished; one
            // execute at a time.
            let error = unsafe { (table.execute)(instance, batch) };
            let _ = done.send(SendPointer(error));
        });
        let started = if on_this_thread {
            job(self.handle);
            true
        } else {
            self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
        };
        if started {
            meanwhile(&InFlight { instance: self, requests: flags });
        }
        let error = result.recv().map_or_else(
            |_| lock_state().new_error(types::code::INTERNAL, 0, "the instance's thread has ended"),
            |SendPointer(error)| error,
        );
        turn.executed();
        settle_batch(address, &ids, error)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Checks a batch after `execute`, and waits until its requests are finished.
fn settle_batch(batch: usize, ids: &[u64], error: *mut types::Error) -> Vec<Outcome> {
    let mut state = lock_state();
    let refused = state.take_error(error, "execute").err();
    if let Some(record) = state.batches.remove(&batch) {
        for (_, (block, contents)) in record.gathered {
            if block.copy() != contents || block.overrun().is_some() {
                report_violation("input.unchanged", "the block of a gathered input was written");
            }
        }
        for scattered in record.scattered {
            state.retire_output(scattered.output);
        }
    }
    for id in ids {
        let Some(request) = state.requests.get_mut(id) else { continue };
        request.returned = true;
        let label = request.label.clone();
        let unsent = if request.detached == 0 { request.open_response.take() } else { None };
        if let Some(refused) = &refused {
            report_exercised("request.refused");
            let accepted = request.result.is_some()
                || request.released
                || request.detached > 0
                || !request.responses.is_empty();
            if accepted {
                let text =
                    format!("execute failed ('{}') after it had accepted {label}", refused.text);
                report_violation("request.refused", text);
            }
            request.detached = 0;
            request.result.get_or_insert_with(|| Err(refused.clone()));
        } else if request.detached == 0 {
            if request.result.is_none() {
                let text =
                    format!("execute returned success, {label} is neither finished nor detached");
                report_violation("request.once", &text);
                request.result = Some(Err(Failure::internal(text)));
            }
            if !request.released {
                let text = format!("execute returned success, {label} was not released");
                report_violation("request.release", text);
                request.released = true;
            }
        }
        if let Some(response) = unsent {
            state.discard_unsent(response, &label);
        }
    }
    let limit = wait_limit();
    let deadline = Instant::now() + limit;
    let open = |r: &RequestRecord| {
        r.result.is_none() || r.detached > 0 || !r.released && refused.is_none()
    };
    while ids.iter().any(|id| state.requests.get(id).is_some_and(open)) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            set_timed_out();
            break;
        }
        let waited = CHANGED.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    let mut outcomes = Vec::new();
    for id in ids {
        let Some(request) = state.requests.remove(id) else { continue };
        let (label, seconds) = (&request.label, limit.as_secs_f64());
        if request.result.is_none() {
            let text = format!("{label} was detached and not finished within {seconds} s");
            report_violation("request.once", text);
        } else if request.detached > 0 {
            let text = format!(
                "the responder of {label} was detached and not released within {seconds} s"
            );
            report_violation("host.responders", text);
        } else if !request.released && refused.is_none() {
            report_violation(
                "request.release",
                format!("{label} was not released within {seconds} s"),
            );
        }
        let unfinished = || Err(Failure::internal("the request was never finished"));
        let (responses, missing) = (request.responses, request.missing);
        let result = request.result.unwrap_or_else(unfinished);
        outcomes.push(Outcome { responses, result, missing });
    }
    let done = if state.hold_releases { Vec::new() } else { std::mem::take(&mut state.done) };
    drop(state);
    call_releases(done);
    for id in ids {
        let view = held_requests().remove(id);
        if let Some(view) = view {
            view.check();
        }
    }
    outcomes
}
