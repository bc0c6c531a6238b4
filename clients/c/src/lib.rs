//! `libtrtserver_client.so`: the client library with a C interface, `include/trtserver_client.h`.
//! The C++ headers and the Python package use nothing else.
//!
//! Every exported function converts its arguments, calls `trtserver-client`, and converts the
//! result. Objects are named by handles ([`handle`]); errors and panics become error objects
//! ([`failure`]).

mod arguments;
mod buffer;
mod failure;
mod fork;
mod handle;
mod image;
mod library;
mod settings;
mod v1;
mod v2;
