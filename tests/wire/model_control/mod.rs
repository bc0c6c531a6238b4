//! Loading and unloading models by request.

mod load_flags;
mod overrides;
mod requests;
mod timeline;
mod traffic;
