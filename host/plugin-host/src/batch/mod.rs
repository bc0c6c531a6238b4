//! One batch between the host and a backend: request views, input gathering, output scattering,
//! responses.
//!
//! Files use each other in this order, lowest first: `alignment`, `timing`, `declared`; `gpu`;
//! `memory`; `outputs`; `later`; `slot`; `views`; `requests`; `gather`, `scatter`; `frame`;
//! `parts`, `run`.

pub mod alignment;
pub mod cancel_notifier;
pub mod frame;
mod gather;
pub mod gpu;
pub mod memory;
pub mod output_declaration;
pub mod outputs;
pub mod parts;
mod requests;
pub mod run;
mod scatter;
pub mod send_after_event;
pub mod slot;
#[cfg(test)]
mod testing;
pub mod timing;
pub mod views;
