//! The interface between trtserver and its backends.
//!
//! [`abi`] is the binary interface, for hosts; authors in C and C++ use the headers in
//! `include/trtserver/` instead. [`author`] is the safe side for backends in Rust.
//!
//! # A complete backend
//!
//! One output, the sum of two inputs. Built as a `cdylib` named `libtrtserver_adder.so`, it serves
//! models with `backend: "adder"`.
//!
//! ```
//! use std::sync::Arc;
//! use trtserver_plugin_api::author::*;
//! use trtserver_plugin_api::{export_backend, trts_info};
//!
//! struct Adder;
//!
//! impl Backend for Adder {
//!     type Model = Sums;
//!     const INFO: BackendInfo = BackendInfo {
//!         // Models of this platform need no file.
//!         platforms: &[Platform { name: "adder", default_file: "" }],
//!         ..BackendInfo::new("adder", "1.0")
//!     };
//!     fn open(_: &BackendContext) -> Result<Self, Error> {
//!         Ok(Adder)
//!     }
//! }
//!
//! /// What the instances of one model version share.
//! struct Sums {
//!     output: String,
//! }
//!
//! impl Model for Sums {
//!     type Backend = Adder;
//!     type Instance = Worker;
//!     fn open(_: &Arc<Adder>, context: &ModelContext) -> Result<Self, Error> {
//!         let Some(output) = context.outputs().next().filter(|o| o.dtype() == Dtype::Fp32) else {
//!             return Err(Error::invalid("the first output must be FP32"));
//!         };
//!         trts_info!(context.log(), "{} writes '{}'", context.name(), output.name());
//!         Ok(Sums { output: output.name().to_owned() })
//!     }
//! }
//!
//! /// Executes batches, on a thread of its own.
//! struct Worker {
//!     model: Arc<Sums>,
//! }
//!
//! impl Instance for Worker {
//!     type Model = Sums;
//!     fn open(model: &Arc<Sums>, _: &InstanceContext) -> Result<Self, Error> {
//!         Ok(Worker { model: model.clone() })
//!     }
//!     fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
//!         for request in batch.requests() {
//!             // An invalid request must not fail the others of its batch.
//!             if let Err(error) = self.add(request) {
//!                 request.fail(error);
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! impl Worker {
//!     fn add(&self, request: Request<'_>) -> Result<(), Error> {
//!         let (a, b) = (request.required_input("A")?, request.required_input("B")?);
//!         if a.shape() != b.shape() {
//!             return Err(Error::invalid("A and B differ in shape"));
//!         }
//!         let (x, y) = (a.as_slice::<f32>()?, b.as_slice::<f32>()?);
//!         let mut response = request.new_response()?;
//!         // Memory that is sent as it is; empty if the output was not requested.
//!         let sums = response.output_slice::<f32>(&self.model.output, a.shape())?;
//!         for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
//!             *sum = x + y;
//!         }
//!         response.send()
//!     }
//! }
//!
//! export_backend!(Adder);
//! # fn main() {}
//! ```
//!
//! # Life cycle
//!
//! 1. The library is loaded, its layouts are compared, and the host reads
//!    [`author::Backend::INFO`]. A library is never unloaded: statics live as long as the process.
//! 2. With the first model that uses the backend, on a loader thread: [`author::Backend::open`].
//! 3. Once per version of a model, on a loader thread, several at once: [`author::Model::open`].
//! 4. Per instance, on the thread that will execute: [`author::Instance::open`], then `execute` for
//!    each batch. A batch is finished before the next one starts, unless requests are detached and
//!    [`author::BackendInfo::max_in_flight`] is above 1.
//! 5. At the end in reverse: each instance is dropped on its thread when its requests are finished,
//!    the model after its last instance, the backend after its last model. Join your threads by
//!    then. Another model may open the backend again.
//!
//! In a child process (`isolation`) a model goes through the same steps.
//!
//! # What both sides guarantee
//!
//! The host: borrowed data is unchanged until the call returns or, for a request, until it is
//! released; executions of an instance never overlap; an accepted response is delivered or
//! discarded, and adopted memory is released exactly once; a panic fails the requests that are not
//! finished.
//!
//! The backend: every accepted request is finished exactly once; inputs are not written to; outputs
//! have the declared type and shape and are not written to after they were sent; whatever is
//! detached or allocated is given back; no thread and no handle is left when the backend closes.
//! `trtserver plugin check` tests all of it, and lists each promise by name. [`author`] ensures
//! most of them by construction.
//!
//! # Versions
//!
//! Host and backend must have the same [`abi::ABI_MAJOR`]; a backend runs on every host whose minor
//! number is at least its own. Optional functions are in [`abi::extensions`]. The rules for changes
//! are those of [`abi`].

#![warn(missing_docs)]
pub mod abi;
pub mod author;

#[doc(hidden)]
pub use abi_stable;
