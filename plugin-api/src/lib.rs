//! The interface between trtserver and its backends.
//!
//! [`abi`] is the interface itself, for hosts and for authors in other languages (who use the headers
//! in `include/trtserver/` instead). [`author`] is the safe side for backends in Rust.
//!
//! # A complete backend
//!
//! One output, the sum of two inputs. Built as a `cdylib` called `libtrtserver_adder.so`, it serves
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
//!     const ABOUT: Description = Description {
//!         // Models of this platform need no file.
//!         platforms: &[Platform { name: "adder", default_file: "" }],
//!         ..Description::new("adder", "1.0")
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
//! /// What executes, on a thread of its own.
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
//!         for call in batch.calls() {
//!             // One bad call is no reason to fail its neighbours.
//!             if let Err(error) = self.add(call) {
//!                 call.fail(error);
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! impl Worker {
//!     fn add(&self, call: Call<'_>) -> Result<(), Error> {
//!         let (a, b) = (call.need("A")?, call.need("B")?);
//!         if a.shape() != b.shape() {
//!             return Err(Error::invalid("A and B differ in shape"));
//!         }
//!         let (x, y) = (a.as_slice::<f32>()?, b.as_slice::<f32>()?);
//!         let mut response = call.respond()?;
//!         // Straight into the memory that goes on the wire; empty if nobody asked for it.
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
//! # From loading to closing
//!
//! 1. The library is opened, its layouts are compared, and it says what it is ([`author::Backend::ABOUT`]); nothing is open yet.
//!    A library is never closed again: statics live as long as the process.
//! 2. With the first model, on a loader thread: [`author::Backend::open`].
//! 3. Once per version of a model, on a loader thread, several at once: [`author::Model::open`].
//! 4. Per instance, on the thread that will execute: [`author::Instance::open`], then `execute` for each batch. One batch is
//!    answered before the next comes, unless replies are kept and [`author::Description::max_in_flight`] is more than 1.
//! 5. At the end the same way back: each instance is dropped on its thread when it owes no answer, the model after its last
//!    instance, the backend after its last model. Join your threads by then. Another model may open the backend again.
//!
//! In a process of its own (`isolation`) a model goes through the same steps.
//!
//! # What both sides promise
//!
//! The host: what it lends stays as it is until the call returns, or, for a request, until it is released; an instance is
//! called by one thread; an answer that was accepted reaches its caller or is dropped, and donated memory is released exactly
//! once; a panic ends as an error of the calls that it left unanswered.
//!
//! The plugin: every accepted call is ended exactly once; inputs are not written to; outputs are of the declared type and
//! shape and not written to after they were sent; whatever is retained or allocated is given back; no thread and no handle is
//! left when the backend closes. `trtserver plugin check` tries all of it, and lists each promise by name. [`author`] keeps most
//! of them by construction.
//!
//! # Versions
//!
//! Host and plugin agree on [`abi::ABI_MAJOR`] exactly; a plugin runs on every host whose minor number
//! is at least its own. Tables grow at their end only, so older plugins keep working; the rules are those of [`abi`].
pub mod abi;
pub mod author;

#[doc(hidden)]
pub use abi_stable;
