//! Loading and unloading models by request.

mod requests;
mod traffic;
