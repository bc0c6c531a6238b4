//! TensorFlow GraphDef and SavedModel files through TensorFlow's C API, whose library is found at run time.
//!
//! ```text
//! backend.rs ── runtime.rs, api.rs   the library, and its functions
//! model.rs ──── signature.rs         what the file declares
//!     │      └─ plan.rs              file against configuration: what execution needs
//! ```

// Until all modules are connected.
#![allow(dead_code)]

mod api;
mod backend;
mod model;
mod plan;
mod runtime;
mod signature;

trtserver_plugin_api::export_backend!(backend::TensorFlow);
