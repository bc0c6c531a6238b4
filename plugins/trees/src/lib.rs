//! The backend `fil`: decision trees of LightGBM and XGBoost through their C libraries, which are
//! found at run time. Configurations are those of Triton's FIL backend.
//!
//! ```text
//! backend.rs ── libraries.rs, symbols.rs    the libraries, and their functions
//!     │      ├─ probe.rs                    which file of a version directory is a model
//!     │      └─ complete.rs                 autocomplete
//! model.rs ──── parameters.rs               what the configuration asks for
//!     │      ├─ model_file.rs               the file
//!     │      ├─ contents.rs                 checked before a library reads it: lightgbm_text.rs, xgboost_trees.rs, ubjson.rs
//!     │      ├─ booster.rs                  the file, opened: lightgbm.rs, xgboost.rs
//!     │      └─ plan.rs                     configuration against booster: what execution needs
//! instance.rs ─ rows.rs                     batches in chunks, by several threads
//!            └─ scores.rs                   classes and probabilities from the framework's values
//! ```

mod backend;
mod booster;
mod complete;
mod contents;
mod instance;
mod libraries;
mod lightgbm;
mod lightgbm_text;
mod model;
mod model_file;
mod parameters;
mod plan;
mod probe;
mod rows;
mod scores;
mod symbols;
mod ubjson;
mod xgboost;
mod xgboost_trees;

/// As in Triton, whose backend for trees has this name.
const BACKEND: &str = "fil";

trtserver_plugin_api::export_backend!(backend::Fil);

#[cfg(test)]
mod with_trees;
