//! Loading and unloading models by request.

mod load_flags;
mod namespaces;
mod overrides;
mod requests;
mod timeline;
mod traffic;
