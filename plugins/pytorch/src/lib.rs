//! The backend `pytorch`: packages of AOTInductor (`model.pt2`), run through the C functions of
//! torch's library and of the compiled model in the package. The library is found at run time.
//!
//! ```text
//! backend.rs ── library.rs, symbols.rs     torch's library, and its functions
//!     │      ├─ probe.rs                   which file of a version directory is a package
//!     │      └─ complete.rs                autocomplete: zero_runs.rs finds out what outputs are
//! model.rs ──── loaded.rs                  a package, opened
//!     │      ├─ package.rs                 the archive; other_files.rs: what is not a package
//!     │      ├─ source.rs                  what the generated code says of the inputs
//!     │      ├─ call_spec.rs               names of inputs and outputs
//!     │      ├─ extracted.rs               the compiled model as a file that can be opened
//!     │      ├─ container.rs               the compiled model
//!     │      └─ declared.rs                its tensors against the configuration
//! execute.rs ── inputs.rs, outputs.rs      batches
//!            ├─ links.rs                   dimensions that have to be equal
//!            └─ tensor.rs, types.rs        torch's tensors and element types
//! ```

mod backend;
mod call_spec;
mod complete;
mod container;
mod declared;
mod execute;
mod extracted;
mod inputs;
mod library;
mod links;
mod loaded;
mod model;
mod other_files;
mod outputs;
mod package;
mod probe;
mod source;
mod symbols;
mod tensor;
mod types;
mod zero_runs;

/// As in Triton, whose backend for PyTorch has this name.
const BACKEND: &str = "pytorch";

trtserver_plugin_api::export_backend!(backend::PyTorch);

#[cfg(test)]
mod measured;
