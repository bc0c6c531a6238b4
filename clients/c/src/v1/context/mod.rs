//! `trtc_v1_context`: creation, and what the calls on it share.

mod completed_runs; // asynchronous runs: results and cancellation; statistics
mod completion_queue; // `trtc_v1_queue`
mod inputs; // inputs of the stateful form
mod model; // `trtc_v1_model`
mod options; // options of a request
mod prepared_request; // `trtc_v1_prepared`
mod run; // runs of the stateful form, and the one-call request

use super::result::V1Result;
use crate::arguments::{read_deadline, read_text, result_place};
use crate::failure::{ClientFailure, ErrorObject, Outcome, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use crate::settings::{RawSettings, read_settings};
use model::{ModelObject, RawModel};
use run::COPY_INPUTS;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trtserver_client::blocking::{self, v1::Context};
use trtserver_client::v1::{ContextOptions, Input, Run, RunOptions};

type Error = ObjectHandle<ErrorObject>;

pub struct V1Context {
    context: Context,
    /// Deadline of requests that set none.
    deadline: Duration,
    /// What the stateful form has set.
    stateful: Mutex<StatefulRequest>,
    model: ModelObject,
}

impl HandleObject for V1Context {
    const NAME: &'static str = "v1 context";
}

/// A request, and the names of the outputs that it asks for.
struct StatefulRequest {
    run: Run,
    order: Vec<String>,
}

impl StatefulRequest {
    fn set_options(&mut self, options: &RunOptions) -> Outcome<()> {
        self.run.set_options(options)?;
        self.order = options.outputs.iter().map(|(name, _)| name.clone()).collect();
        Ok(())
    }
}

impl V1Context {
    fn stateful(&self) -> MutexGuard<'_, StatefulRequest> {
        self.stateful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit(&self, deadline_us: u64) -> Option<Duration> {
        match read_deadline(deadline_us) {
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
            ClientFailure::argument(format!(
                "input {index} of model '{}' does not exist, it has {count} inputs",
                self.context.model().name
            ))
        })?;
        Ok(change(input)?)
    }

    /// Sends a request and waits.
    fn finish(&self, request: &StatefulRequest) -> Outcome<ObjectHandle<V1Result>> {
        let results = self.context.run(&request.run)?;
        Ok(ObjectHandle::new(Arc::new(V1Result::new(results, &request.order))))
    }

    /// Sends a request; the callback, or a later call, gets the result.
    fn start(
        &self,
        request: &StatefulRequest,
        flags: u32,
        callback: Option<Callback>,
        user: CallbackUser,
    ) -> Outcome<u64> {
        let order = request.order.clone();
        let deliver = callback.map(|callback| -> blocking::v1::Callback {
            Box::new(move |id, results| {
                // The structure, not its field, is what may be sent to another thread.
                let user = user;
                let (error, result) = match results {
                    Ok(results) => (
                        ObjectHandle::NULL,
                        ObjectHandle::new(Arc::new(V1Result::new(results, &order))),
                    ),
                    Err(error) => {
                        (ErrorObject::handle(&ClientFailure::Client(error)), ObjectHandle::NULL)
                    }
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
    unsafe extern "C" fn(user: *mut c_void, id: u64, error: Error, result: ObjectHandle<V1Result>);

/// What a callback is called with. The caller answers for its use on the callback thread.
#[derive(Clone, Copy)]
struct CallbackUser(*mut c_void);

// SAFETY: only passed on.
unsafe impl Send for CallbackUser {}

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
    context: *mut ObjectHandle<V1Context>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (mut settings, model, place) = unsafe {
            (
                read_settings(raw)?,
                read_text(model, "the model's name")?,
                result_place(context, "context")?,
            )
        };
        let options =
            ContextOptions { version, correlation_id, streaming, ..ContextOptions::new(model) };
        let usual = settings.call_deadline()?.unwrap_or(Duration::MAX);
        if let Some(deadline) = read_deadline(deadline_us) {
            settings.deadline = deadline.into();
        }
        let context = Context::new(&settings, &options)?;
        place.write(ObjectHandle::new(Arc::new(V1Context {
            deadline: usual,
            stateful: Mutex::new(StatefulRequest { run: context.new_run(), order: Vec::new() }),
            model: ModelObject::new(context.model(), correlation_id),
            context,
        })));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_context_free(context: ObjectHandle<V1Context>) {
    // Dropping it waits for the callbacks.
    ignore_panic((), || drop(context.release()));
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_model(
    context: ObjectHandle<V1Context>,
    model: *mut *const RawModel,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result_place(model, "model") }?;
        place.write(&raw const context.get()?.model.raw);
        Ok(())
    })
}
