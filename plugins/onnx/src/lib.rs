//! ONNX models through ONNX Runtime, whose library is found at run time.
//!
//! ```text
//! backend.rs ── search.rs, runtime.rs   where the library is, what it gives; log.rs
//!     │      └─ complete.rs             what a configuration leaves out
//! model.rs ──── options.rs, session.rs  the file, opened
//!     │      └─ config.rs, check.rs     file against configuration: the plan
//! execute.rs ── inputs.rs, outputs.rs   a call, in and out; merge.rs: several calls in one run
//!            ├─ kept.rs, binding.rs     small calls like earlier ones
//!            └─ shape.rs, value.rs, strings.rs, types.rs
//! ```

mod backend;
mod binding;
mod check;
mod complete;
mod config;
mod execute;
mod fault;
mod inputs;
mod kept;
mod log;
mod merge;
mod model;
mod options;
mod outputs;
mod runtime;
mod search;
mod session;
mod shape;
mod strings;
mod types;
mod value;

/// Name of a model's file when its configuration gives none.
const DEFAULT_FILE: &str = "model.onnx";

trtserver_plugin_api::export_backend!(backend::Onnx);

#[cfg(test)]
mod tests;
