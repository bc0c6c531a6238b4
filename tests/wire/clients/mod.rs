//! The clients of this repository, against the real server.

mod c;
mod core;
mod perf;
mod programs;
mod python;
mod requests;
mod tls;
