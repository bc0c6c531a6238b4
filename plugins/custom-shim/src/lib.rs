//! Libraries written for `custom.h`, the custom backend interface of the TensorRT Inference Server,
//! unmodified.
//!
//! ```text
//! backend.rs ── generation.rs           which of the four interfaces a library speaks
//!     │      └─ trial.rs              finds it where nothing says it
//! model.rs ──── library.rs             its file, opened once
//! instance.rs ─ legacy.rs               the functions and structures of the header
//!     │      └─ config.rs, schema.rs    the configuration as that generation knows it
//!     └──────── payloads.rs             a batch as the library sees it
//!               callbacks.rs ─ callback_context.rs ─ session.rs    callbacks of the library while it executes
//! ```

mod backend;
mod callback_context;
mod callbacks;
mod config;
mod custom_h;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod generation;
mod instance;
mod library;
mod model;
mod payloads;
mod schema;
mod session;
mod trial;

trtserver_plugin_api::export_backend!(backend::Custom);

#[cfg(test)]
mod tests;
