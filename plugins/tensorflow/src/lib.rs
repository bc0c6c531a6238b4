//! TensorFlow GraphDef and SavedModel files through TensorFlow's C API, whose library is found at run time.
//!
//! ```text
//! backend.rs ── runtime.rs, api.rs   the library, and its functions
//! model.rs ──── signature.rs         what the file declares
//!     │      ├─ saved_model.rs, graph_def.rs, graph_names.rs   read from the file; function_library.rs, proto.rs
//!     │      ├─ session_config.rs     options of a session
//!     │      └─ check.rs, plan.rs     file against configuration: what execution needs
//! ```

// Until all modules are connected.
#![allow(dead_code)]

mod api;
mod backend;
mod check;
mod complete;
mod function_library;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod graph_def;
mod graph_names;
mod model;
mod plan;
mod proto;
mod runtime;
mod saved_model;
mod session_config;
mod signature;
mod types;

trtserver_plugin_api::export_backend!(backend::TensorFlow);

#[cfg(test)]
#[path = "../../../tests/src/tensorflow_files.rs"]
#[allow(dead_code)] // wire tests use more of it
mod tensorflow_files;
