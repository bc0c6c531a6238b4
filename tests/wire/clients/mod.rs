//! The clients of this repository, against the real server.

mod core;
mod programs;
mod tls;
