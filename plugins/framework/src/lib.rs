//! What the plugins of framework libraries share: finding the library, reading the model
//! configuration, and checking requests against the tensors of a model.
//!
//! ```text
//! function_table.rs   functions of a C library, looked up at run time
//! search.rs   candidate paths of a framework's library, and opening them;  library_slot.rs: once for all models
//! config.rs   configured tensors and the fields that the model descriptor lacks
//! check.rs    tensors of a model's file against the configuration; complete.rs: autocomplete
//! row_probe.rs   whether a model's first dimension is a batch, for autocomplete;  row_values.rs: elements of rows
//! slot.rs     a tensor of a model as execution needs it; shape.rs, types.rs
//! inputs.rs   inputs of a request, checked; strings.rs; merge.rs: whether requests can be executed as one
//! execute.rs  a batch as one run, or request by request
//! outlet.rs   where outputs go: one response, or a whole batch
//! file_contents.rs   what a file is that is not a model
//! model_files.rs  files that a model names
//! fault.rs    errors;  log.rs: log lines of a library that is never closed
//! ```

pub mod check;
pub mod complete;
pub mod config;
pub mod execute;
pub mod fault;
pub mod file_contents;
pub mod function_table;
pub mod inputs;
pub mod library_slot;
pub mod log;
pub mod merge;
pub mod model_files;
pub mod outlet;
pub mod row_probe;
pub mod row_values;
pub mod search;
pub mod shape;
pub mod slot;
pub mod strings;
pub mod types;
