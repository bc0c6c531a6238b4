//! The status page for people, and the JSON beneath it, which is the same for scripts.
//!
//! [`page`] has the files of the page, which hold no data. [`StatusFeed`] reads the counters of all
//! models at most once a second, while there is a viewer; all viewers share the reading.
//! [`advice`] says in words what to change. [`configuration`] says which values of a configuration
//! come from which line of its file. [`recent`] lists lines of the log and changes of the
//! repository.
//!
//! Terms: a *reading* is the counters of all versions at one time, a *snapshot* the status that is
//! made of it, and a *viewer* is sent the changes between two snapshots.

#![forbid(unsafe_code)]

pub mod advice;
pub mod configuration;
mod counters;
mod feed;
mod model_report;
pub mod page;
pub mod recent;
mod server_report;

pub use feed::{StatusFeed, StatusSnapshot, StatusSources, Viewer};
pub use server_report::{ConnectionCount, ConnectionCounts};
