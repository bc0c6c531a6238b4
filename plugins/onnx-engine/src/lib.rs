//! ONNX Runtime for plugins: runs every model whose files a plugin can turn into an ONNX graph.
//!
//! A plugin implements [`ModelFormat`] and exports [`Engine`] of it. The library is found at run
//! time.
//!
//! ```text
//! plugin.rs ─── runtime.rs              the library; log.rs
//!     │         row_probe.rs            whether a model batches, for completion
//! model.rs ──── options.rs, session.rs  the graph, opened
//!     │      ├─ check.rs                its tensors, for the check against the configuration
//!     │      └─ findings.rs             what runs have shown of their shapes
//!     ├── session_entries.rs             the library's own settings;  external_data.rs: files that the graph names
//!     └── accelerators.rs, provider.rs, provider_options.rs, provider_session.rs
//! execute.rs ── inputs.rs, outputs.rs   one request; merge.rs: several requests in one run
//!            ├─ cached_runs.rs, binding.rs     small requests like earlier ones
//!            └─ value.rs, strings.rs, types.rs
//! gpu/ ──────── instances on GPUs
//! ```

mod accelerators;
mod binding;
mod cached_runs;
mod check;
mod execute;
mod external_data;
mod findings;
mod gpu;
mod inputs;
mod log;
mod merge;
mod model;
mod options;
mod outputs;
mod plugin;
mod provider;
mod provider_options;
mod provider_session;
mod row_probe;
mod runtime;
mod session;
mod session_entries;
mod strings;
mod types;
mod value;

pub use gpu::preload::preload_cuda;
pub use plugin::{Engine, ModelFormat, ModelGraph};
pub use runtime::VARIABLE;

#[cfg(test)]
mod tests;
