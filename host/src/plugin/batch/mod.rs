//! One batch between the host and a backend: request views, input gathering, output scattering, responses.
//!
//! Files use each other in this order, lowest first: `alignment`, `timing`, `declared`; `gpu`; `memory`; `outputs`; `later`; `slot`; `views`;
//! `requests`; `gather`, `scatter`; `frame`; `parts`, `run`.

pub mod alignment; // aligns inputs as the backend requires
pub mod cancel_notifier; // calls a backend's `cancel` entry
pub mod declared; // checks an output against its declaration
pub mod frame; // a batch as backends see it
mod gather; // an input of all requests as one block
pub mod gpu; // inputs and outputs on the GPU of the instance
pub mod later; // responses that wait for the device
pub mod memory; // memory that becomes an output
pub mod outputs; // a response being built
pub mod parts; // parts of a batch that are executed one after the other
mod requests; // the requests of a batch
pub mod run; // one batch through an instance
mod scatter; // an output of all requests as one block
pub mod slot; // the state behind request and response handles
#[cfg(test)]
mod testing; // set-up of the unit tests
pub mod timing; // phase times of the batch being executed
pub mod views; // the flat arrays of a batch
