//! ONNX models through ONNX Runtime, whose library is found at run time.
//!
//! ```text
//! backend.rs ── runtime.rs              the library; log.rs
//!     │      └─ complete.rs             autocomplete
//! model.rs ──── options.rs, session.rs  the file, opened
//!     │      └─ check.rs                file against configuration: the plan
//! execute.rs ── inputs.rs, outputs.rs   one request; merge.rs: several requests in one run
//!            ├─ cached_runs.rs, binding.rs     small requests like earlier ones
//!            └─ value.rs, strings.rs, types.rs
//! ```

mod backend;
mod binding;
mod cached_runs;
mod check;
mod complete;
mod execute;
mod inputs;
mod log;
mod merge;
mod model;
mod options;
mod outputs;
mod runtime;
mod session;
mod strings;
mod types;
mod value;

/// Name of a model's file when its configuration gives none.
const DEFAULT_FILE: &str = "model.onnx";

trtserver_plugin_api::export_backend!(backend::Onnx);

#[cfg(test)]
mod tests;
