//! Polling of the model repository: changes of files while the server runs.

mod bad_input;
mod changes;
mod instances;
mod sequences;
mod traffic;
