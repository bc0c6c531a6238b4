//! `trtc_v1_context`: creation, and what the calls on it share.

mod completed; // asynchronous runs: results and cancellation; statistics
mod inputs; // inputs of the stateful form
mod model; // `trtc_v1_model`
mod options; // options of a request
mod prepared; // `trtc_v1_prepared`
mod queued; // `trtc_v1_queue`
mod run; // runs of the stateful form, and the one-call request

use super::result::V1Result;
use crate::arguments::{deadline, result, text};
use crate::failure::{ErrorObject, Failure, Outcome, call, quiet};
use crate::handle::{Handle, Object};
use crate::settings::{RawSettings, settings};
use model::{ModelObject, RawModel};
use run::COPY_INPUTS;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trtserver_client::blocking::{self, v1::Context};
use trtserver_client::v1::{ContextOptions, Input, Run, RunOptions};

type Error = Handle<ErrorObject>;

pub struct V1Context {
    context: Context,
    /// Deadline of requests that set none.
    deadline: Duration,
    /// What the stateful form has set.
    stateful: Mutex<Request>,
    model: ModelObject,
}

impl Object for V1Context {
    const NAME: &'static str = "v1 context";
}

/// A request, and the names of the outputs that it asks for.
struct Request {
    run: Run,
    order: Vec<String>,
}

impl Request {
    fn set_options(&mut self, options: &RunOptions) -> Outcome<()> {
        self.run.set_options(options)?;
        self.order = options.outputs.iter().map(|(name, _)| name.clone()).collect();
        Ok(())
    }
}

impl V1Context {
    fn stateful(&self) -> MutexGuard<'_, Request> {
        self.stateful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit(&self, deadline_us: u64) -> Option<Duration> {
        match deadline(deadline_us) {
            Some(limit) => Some(limit.unwrap_or(Duration::MAX)),
            None => Some(self.deadline),
        }
    }

    /// Calls `change` with an input of the stateful form.
    fn change<T>(
        &self,
        index: usize,
        change: impl FnOnce(&mut Input) -> trtserver_client::Result<T>,
    ) -> Outcome<T> {
        let mut request = self.stateful();
        let count = request.run.inputs().len();
        let input = request.run.inputs_mut().get_mut(index).ok_or_else(|| {
            Failure::argument(format!(
                "input {index} of model '{}' does not exist, it has {count} inputs",
                self.context.model().name
            ))
        })?;
        Ok(change(input)?)
    }

    /// Sends a request and waits.
    fn finish(&self, request: &Request) -> Outcome<Handle<V1Result>> {
        let results = self.context.run(&request.run)?;
        Ok(Handle::new(Arc::new(V1Result::new(results, &request.order))))
    }

    /// Sends a request; the callback, or a later call, gets the result.
    fn start(
        &self,
        request: &Request,
        flags: u32,
        callback: Option<Callback>,
        user: User,
    ) -> Outcome<u64> {
        let order = request.order.clone();
        let deliver = callback.map(|callback| -> blocking::v1::Callback {
            Box::new(move |id, results| {
                // The structure, not its field, is what may be sent to another thread.
                let user = user;
                let (error, result) = match results {
                    Ok(results) => {
                        (Handle::NULL, Handle::new(Arc::new(V1Result::new(results, &order))))
                    }
                    Err(error) => (ErrorObject::handle(&Failure::Client(error)), Handle::NULL),
                };
                // SAFETY: the caller gave a function of this type, with what it is called with.
                unsafe { callback(user.0, id, error, result) };
            })
        });
        if flags & COPY_INPUTS == 0 {
            return Ok(self.context.run_async(&request.run, deliver)?);
        }
        let mut copy = request.run.clone();
        for input in copy.inputs_mut() {
            // SAFETY: what the caller has set is valid now.
            unsafe { input.copy_borrowed() };
        }
        Ok(self.context.run_async(&copy, deliver)?)
    }
}

type Callback =
    unsafe extern "C" fn(user: *mut c_void, id: u64, error: Error, result: Handle<V1Result>);

/// What a callback is called with. The caller answers for its use on the callback thread.
#[derive(Clone, Copy)]
struct User(*mut c_void);

// SAFETY: only passed on.
unsafe impl Send for User {}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_new(
    raw: *const RawSettings,
    model: *const c_char,
    version: i64,
    correlation_id: u64,
    streaming: bool,
    deadline_us: u64,
    context: *mut Handle<V1Context>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (mut settings, model, place) = unsafe {
            (settings(raw)?, text(model, "the model's name")?, result(context, "context")?)
        };
        let options =
            ContextOptions { version, correlation_id, streaming, ..ContextOptions::new(model) };
        let usual = settings.call_deadline()?.unwrap_or(Duration::MAX);
        if let Some(deadline) = deadline(deadline_us) {
            settings.deadline = deadline.into();
        }
        let context = Context::new(&settings, &options)?;
        place.write(Handle::new(Arc::new(V1Context {
            deadline: usual,
            stateful: Mutex::new(Request { run: context.new_run(), order: Vec::new() }),
            model: ModelObject::new(context.model(), correlation_id),
            context,
        })));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_context_free(context: Handle<V1Context>) {
    // Dropping it waits for the callbacks.
    quiet((), || drop(context.release()));
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_model(
    context: Handle<V1Context>,
    model: *mut *const RawModel,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result(model, "model") }?;
        place.write(&raw const context.get()?.model.raw);
        Ok(())
    })
}
