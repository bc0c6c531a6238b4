//! The backend `openvino`: models that OpenVINO reads, run by its C library, which is found at run
//! time. Configurations are those of Triton's OpenVINO backend.
//!
//! ```text
//! backend.rs ── library.rs, symbols.rs, messages.rs   the library, its functions and error texts
//!     │      ├─ probe.rs         which file of a version directory is a model
//!     │      └─ row_probe.rs     whether a model batches, for completion
//! model.rs ──── options.rs       what the configuration asks for;  device.rs: names of devices
//!     │      ├─ model_file.rs    the file, and what it is if it is not a model
//!     │      ├─ network.rs       the file, read: its tensors;  reshape.rs: other shapes than the file's
//!     │      └─ compiled.rs      the network on a device, and its runs
//! instance.rs ─ inputs.rs, outputs.rs   one request;  merge.rs: several requests in one run
//!            └─ tensor.rs, types.rs
//! ```

mod backend;
mod compiled;
mod device;
mod inputs;
mod instance;
mod library;
mod merge;
mod messages;
mod model;
mod model_file;
mod network;
mod options;
mod outputs;
mod probe;
mod reshape;
mod row_probe;
mod symbols;
mod tensor;
mod types;

/// As in Triton.
const BACKEND: &str = "openvino";

trtserver_plugin_api::export_backend!(backend::OpenVinoBackend);

#[cfg(test)]
mod with_openvino;
