//! TensorFlow GraphDef and SavedModel files through TensorFlow's C API, whose library is found at
//! run time.
//!
//! ```text
//! backend.rs ── runtime.rs, api.rs     the library, and its functions; environment.rs
//!     │      ├─ complete.rs            autocomplete; row_probe.rs: whether a model batches
//!     │      └─ probe.rs               which entry of a version directory is a model
//! model.rs ──── file.rs, signature.rs  the file, and what it declares; init_ops.rs
//!     │      ├─ saved_model.rs, graph_def.rs, graph_names.rs   read from the file; function_library.rs, proto.rs
//!     │      ├─ network.rs, session.rs, session_config.rs      the file, opened by TensorFlow
//!     │      ├─ accelerator.rs         TF-TRT
//!     │      ├─ check.rs, plan.rs      file against configuration: what execution needs
//!     │      └─ state.rs, kernels.rs   whether runs keep tensors; whether the library can execute all operations
//! execute.rs ── inputs.rs, outputs.rs  one request; merge.rs: several requests in one run
//!            └─ tensor.rs, strings.rs, types.rs, status.rs
//! ```

mod accelerator;
mod api;
mod backend;
mod check;
mod complete;
mod environment;
mod execute;
mod file;
mod function_library;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod graph_def;
mod graph_names;
mod init_ops;
mod inputs;
mod kernels;
mod merge;
mod model;
mod network;
mod outputs;
mod plan;
mod probe;
mod proto;
mod row_probe;
mod runtime;
mod saved_model;
mod session;
mod session_config;
mod signature;
mod state;
mod status;
mod strings;
mod tensor;
mod types;

/// Platforms, and the name of a model's file or directory when its configuration gives none.
const GRAPH_DEF: &str = "tensorflow_graphdef";
const DEFAULT_FILE: &str = "model.graphdef";
const SAVED_MODEL: &str = "tensorflow_savedmodel";
const DEFAULT_DIRECTORY: &str = "model.savedmodel";

trtserver_plugin_api::export_backend!(backend::TensorFlow);

#[cfg(test)]
#[path = "../../../tests/src/tensorflow_files.rs"]
#[allow(dead_code)] // wire tests use more of it
mod tensorflow_files;
#[cfg(test)]
mod with_tensorflow;
