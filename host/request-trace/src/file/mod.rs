//! The trace file: Triton's JSON format, written by a thread of its own.
//!
//! `FILE` is an array of records that grows. With a log frequency of N, or once the count of traces
//! is used up, a file `FILE.0`, `FILE.1` … is written whole for each N traces.

mod collected;
mod format;
mod writer;

pub use collected::Collected;
pub use format::write_records;
pub use writer::TraceFile;
