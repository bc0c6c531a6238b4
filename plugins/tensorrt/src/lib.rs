//! TensorRT plans: the library is found at run time and called through tables of virtual-table
//! slots.
//!
//! ```text
//! backend.rs ── settings.rs, complete.rs          autocomplete
//! model.rs ──── plan_file.rs                      the header of a plan; library.rs, library_places.rs: the library for it
//!     │      ├─ engine.rs, tensors.rs, types.rs   the deserialized plan; refit.rs: its weights; profile.rs
//!     │      └─ plugin_libraries.rs
//! instance.rs ─ context.rs                        an execution context for each profile
//!     └─ run.rs, buffers.rs, choose_profile.rs, outlet.rs one run; graphs.rs: by a CUDA graph
//! slots/, vtable.rs, callbacks/                   how the C++ library is called, and calls back
//! driver.rs                                       the CUDA driver's functions beside the host's
//! ```

mod backend;
mod buffers;
mod callbacks;
mod choose_profile;
mod complete;
mod context;
mod driver;
mod engine;
mod graphs;
mod instance;
mod library;
mod library_places;
mod model;
mod outlet;
mod plan_file;
mod plugin_libraries;
mod profile;
mod refit;
mod run;
mod settings;
mod slots;
mod tensors;
mod types;
mod vtable;

trtserver_plugin_api::export_backend!(backend::TensorRt);
