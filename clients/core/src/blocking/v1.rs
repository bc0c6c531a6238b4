//! The client and the inference contexts of v1 without async.

use super::calls::{BackgroundCalls, Call, CallCompletion};
use super::{RuntimeDriver, forward, wait_for};
use crate::error::{Error, Kind, Result};
use crate::settings::Settings;
use crate::shared::blocking_methods;
use crate::sync::{Condvar, Mutex};
use crate::v1;
use crate::v1::messages::{ModelRepositoryIndex, ServerStatus, SharedMemoryStatus};
use crate::v1::{
    ContextOptions, InferRequest, InferResponse, Prepared, Response, Run, RunResults, ServedModel,
    Statistics, Template,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// See [`v1::Client`]. May be used by several threads at the same time.
pub struct BlockingClient {
    driver: RuntimeDriver,
    inner: v1::Client,
}

impl BlockingClient {
    /// Connects at the first call.
    ///
    /// # Errors
    /// The settings contradict each other or cannot be read.
    pub fn new(settings: &Settings) -> Result<Self> {
        Ok(Self { driver: RuntimeDriver::new()?, inner: v1::Client::new_direct(settings)? })
    }

    blocking_methods!(v1::Client);

    forward! {
        is_live() -> Response<bool>;
        is_ready() -> Response<bool>;
        /// The status of one model, or with `None` of all models and the server.
        status(model: Option<&str>) -> Response<ServerStatus>;
        start_profile() -> Response<()>;
        stop_profile() -> Response<()>;
        repository_index() -> Response<ModelRepositoryIndex>;
        /// Loads or reloads a model. A deadline must leave time for it; the usual one is
        /// [`DEFAULT_LOAD_DEADLINE`](crate::DEFAULT_LOAD_DEADLINE).
        load(model: &str) -> Response<()>;
        unload(model: &str) -> Response<()>;
        /// `key` names the POSIX object, `offset` is where the region begins in it.
        register_system_shared_memory(name: &str, key: &str, offset: u64, byte_size: u64) -> Response<()>;
        /// `raw_handle` is a CUDA IPC handle of 64 bytes.
        register_cuda_shared_memory(name: &str, raw_handle: &[u8], byte_size: u64, device_id: i64) -> Response<()>;
        unregister_shared_memory(name: &str) -> Response<()>;
        unregister_all_shared_memory() -> Response<()>;
        shared_memory_status() -> Response<SharedMemoryStatus>;
        /// Sends one inference request as it is.
        infer(request: &InferRequest) -> InferResponse;
    }
}

/// See [`v1::Context`]. May be used by several threads at the same time.
///
/// [`run`](Self::run) waits for the results. [`run_async`](Self::run_async) calls a callback, or
/// keeps the results until they are taken. Dropping the context cancels what runs and returns after
/// the last callback, except in a callback itself.
pub struct Context {
    // Dropped first: it waits for the callbacks.
    calls: BackgroundCalls,
    /// `None` for streams, which are in the background as a whole.
    driver: Option<RuntimeDriver>,
    inner: Arc<v1::Context>,
    /// Context of the asynchronous runs.
    background: Arc<v1::Context>,
    kept: Arc<CollectedRuns>,
}

/// Asynchronous runs without a callback.
#[derive(Default)]
struct CollectedRuns {
    state: Mutex<KeptState>,
    changed: Condvar,
}

#[derive(Default)]
struct KeptState {
    /// `None` until the run has completed.
    runs: BTreeMap<u64, Option<Result<RunResults>>>,
    /// Ids of completed runs, in the order of completion.
    completed: VecDeque<u64>,
    /// All calls that can be cancelled, also those with a callback.
    calls: BTreeMap<u64, Option<Call>>,
    /// Runs with a callback that has not been called.
    with_callback: usize,
}

/// Called with the number of the run and its results.
pub type Callback = Box<dyn FnOnce(u64, Result<RunResults>) + Send>;

impl Context {
    /// Asks the server for the status of the model.
    ///
    /// # Errors
    /// The settings are wrong, the server does not respond or does not know the model.
    pub fn new(settings: &Settings, options: &ContextOptions) -> Result<Self> {
        let (driver, inner, background) = if options.streaming {
            let inner = Arc::new(wait_for(v1::Context::new(settings, options))?);
            (None, inner.clone(), inner)
        } else {
            let driver = RuntimeDriver::new()?;
            let inner = Arc::new(driver.run(v1::Context::new_direct(settings, options))?);
            let background = Arc::new(inner.sibling(settings)?);
            (Some(driver), inner, background)
        };
        Ok(Self {
            calls: BackgroundCalls::default(),
            driver,
            inner,
            background,
            kept: Arc::default(),
        })
    }

    /// The server as errors name it.
    #[must_use]
    pub fn url(&self) -> &str {
        self.inner.client().url()
    }

    /// The model as the context sees it.
    #[must_use]
    pub fn model(&self) -> &Arc<ServedModel> {
        self.inner.model()
    }

    /// As [`Context::correlation_id`](crate::v1::Context::correlation_id).
    #[must_use]
    pub fn correlation_id(&self) -> u64 {
        self.inner.correlation_id()
    }

    /// A request to fill in. It may be sent several times, and changed in between.
    #[must_use]
    pub fn new_run(&self) -> Run {
        self.inner.new_run()
    }

    /// Statistics of all completed runs.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let one = self.inner.statistics();
        if Arc::ptr_eq(&self.inner, &self.background) {
            return one;
        }
        let other = self.background.statistics();
        Statistics {
            completed_request_count: one.completed_request_count + other.completed_request_count,
            cumulative_total_request_time_ns: one.cumulative_total_request_time_ns
                + other.cumulative_total_request_time_ns,
            cumulative_send_time_ns: one.cumulative_send_time_ns + other.cumulative_send_time_ns,
            cumulative_receive_time_ns: one.cumulative_receive_time_ns
                + other.cumulative_receive_time_ns,
        }
    }

    /// Sends what the run holds and waits for the results.
    pub fn run(&self, run: &Run) -> Result<RunResults> {
        match &self.driver {
            Some(driver) => driver.run(self.inner.run(run)),
            None => wait_for(self.inner.run(run)),
        }
    }

    /// See [`v1::Context::template`].
    pub fn template<S: AsRef<str>>(&self, run: &Run, order: &[S]) -> Result<Template> {
        self.inner.template(run, order)
    }

    /// See [`v1::Context::run_template`].
    pub fn run_template(&self, template: &Template, data: &[u8]) -> Result<RunResults> {
        match &self.driver {
            Some(driver) => driver.run(self.inner.run_template(template, data)),
            None => wait_for(self.inner.run_template(template, data)),
        }
    }

    /// Sends what the run holds in the background and returns the number of the run, from 1. The
    /// run may be changed at once. Without a callback the results are kept for
    /// [`take`](Self::take). The callback may make calls of its own.
    pub fn run_async(&self, run: &Run, callback: Option<Callback>) -> Result<u64> {
        let id = self.background.next_id();
        let prepared = run.prepare(id)?;
        let kept = self.kept.clone();
        {
            let mut state = kept.state.lock();
            state.calls.insert(id, None);
            match callback {
                Some(_) => state.with_callback += 1,
                None => drop(state.runs.insert(id, None)),
            }
        }
        let done = move |results: Result<RunResults>| {
            let mut state = kept.state.lock();
            state.calls.remove(&id);
            match callback {
                Some(callback) => {
                    state.with_callback -= 1;
                    drop(state);
                    callback(id, results);
                }
                None => {
                    state.runs.insert(id, Some(results));
                    state.completed.push_back(id);
                    kept.changed.notify_all();
                }
            }
        };
        self.list(id, self.start(prepared, (CallCompletion::Callback, done)))
    }

    /// As [`run_async`](Self::run_async), for a `then` that only passes the results on: it runs on
    /// the runtime, so that it must neither block, nor make calls, nor drop the context.
    pub fn run_then(
        &self,
        run: &Run,
        then: impl FnOnce(u64, Result<RunResults>) + Send + 'static,
    ) -> Result<u64> {
        let id = self.background.next_id();
        let prepared = run.prepare(id)?;
        self.list(id, self.start(prepared, (CallCompletion::Direct, self.listed(id, then))))
    }

    /// As [`run_then`](Self::run_then) with a template. See [`v1::Context::run_template`].
    pub fn run_template_then(
        &self,
        template: Arc<Template>,
        data: Vec<u8>,
        then: impl FnOnce(u64, Result<RunResults>) + Send + 'static,
    ) -> Result<u64> {
        template.check(data.len())?;
        let id = self.background.next_id();
        let context = self.background.clone();
        let call = async move { (context.run_template(&template, &data).await, ()) };
        let completion = (CallCompletion::Direct, self.listed(id, then));
        self.list(id, self.calls.start(call, std::future::ready(()), completion))
    }

    fn start(
        &self,
        prepared: Prepared,
        completion: (CallCompletion, impl FnOnce(Result<RunResults>) + Send + 'static),
    ) -> Result<Call> {
        let context = self.background.clone();
        // `send` waits itself until borrowed memory is released; after a cancellation that remains
        // to be done.
        let (settling, borrow) = (self.background.clone(), prepared.borrow());
        let after = async move { settling.client().settle(&borrow).await };
        let call = async move { context.send_in_order(prepared).await };
        self.calls.start(call, after, completion)
    }

    /// Lists a run that can be cancelled, until `then` is called.
    fn listed(
        &self,
        id: u64,
        then: impl FnOnce(u64, Result<RunResults>) + Send + 'static,
    ) -> impl FnOnce(Result<RunResults>) + Send + 'static {
        let kept = self.kept.clone();
        kept.state.lock().calls.insert(id, None);
        move |results| {
            kept.state.lock().calls.remove(&id);
            then(id, results);
        }
    }

    /// Keeps the call for [`cancel`](Self::cancel).
    fn list(&self, id: u64, started: Result<Call>) -> Result<u64> {
        let mut state = self.kept.state.lock();
        match started {
            Ok(call) => {
                // Nothing is listed if it has completed already.
                if let Some(slot) = state.calls.get_mut(&id) {
                    *slot = Some(call);
                }
                Ok(id)
            }
            Err(error) => {
                state.runs.remove(&id);
                state.calls.remove(&id);
                Err(error)
            }
        }
    }

    /// The results of a run without a callback; `None` if it has not completed and `wait` is false.
    pub fn take(&self, id: u64, wait: bool) -> Result<Option<RunResults>> {
        let mut state = self.kept.state.lock();
        if state.runs.is_empty() {
            return Err(Error::invalid("No asynchronous requests have been sent"));
        }
        loop {
            match state.runs.get_mut(&id) {
                None => return Err(Error::invalid("No matched asynchronous request found.")),
                Some(results @ Some(_)) => {
                    let results = results.take();
                    state.runs.remove(&id);
                    state.completed.retain(|completed| *completed != id);
                    return results.transpose();
                }
                Some(None) if !wait => return Ok(None),
                Some(None) => state = self.kept.changed.wait(state),
            }
        }
    }

    /// The number of a run without a callback that has completed, first come, first served; `None`
    /// if there is none and `wait` is false. It stays until it is taken.
    pub fn next_completed(&self, wait: bool) -> Result<Option<u64>> {
        let mut state = self.kept.state.lock();
        if state.runs.is_empty() {
            let text = match state.with_callback {
                0 => "No asynchronous requests have been sent",
                _ => {
                    "No asynchronous requests can be returned, all outstanding requests will signal completion via \
                     their callback function"
                }
            };
            return Err(Error::new(Kind::Unavailable, text));
        }
        loop {
            if let Some(id) = state.completed.front() {
                return Ok(Some(*id));
            }
            if !wait {
                return Ok(None);
            }
            state = self.kept.changed.wait(state);
        }
    }

    /// Cancels an asynchronous run: its result is an error of the kind `Cancelled`, unless it has
    /// completed.
    pub fn cancel(&self, id: u64) {
        let call = self.kept.state.lock().calls.remove(&id);
        if let Some(Some(call)) = call {
            call.cancel();
        }
    }
}
