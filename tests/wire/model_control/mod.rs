//! Loading and unloading models by request.

mod client_loads;
mod ensembles;
mod load_flags;
mod namespaces;
mod overrides;
mod reloads;
mod requests;
mod timeline;
mod traffic;
