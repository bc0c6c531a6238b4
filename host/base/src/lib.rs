//! What every part of the host uses. This crate knows no model, no protocol and no backend.
//!
//! - [`error`]: one error type, a code and a message; the frontends map codes to statuses.
//! - [`clock`], [`timer`]: CLOCK_MONOTONIC, and callbacks at deadlines.
//! - [`stats`]: counters and latency histograms of model versions, merged when they are read.
//! - [`tls_stats`]: counters of the handshakes and certificates of a listener; [`access_stats`]: of
//!   refused requests.
//! - [`budget`]: bytes that requests and responses may hold; [`ledger`]: who holds which bytes.
//! - [`arena`]: memory that the server shares with the processes of isolated models.
//! - [`heap`], [`reclaim`], [`upkeep`]: the allocator's free memory, large memory that a thread of
//!   its own unmaps, and what starts both.
//! - [`host_policy`]: CPU cores and the memory node of threads.
//! - [`cancel_flag`], [`state`], [`request_id`]: a load that is broken off, the phase of the
//!   server, the id of a request in log lines.

pub mod access_stats;
pub mod arena;
pub mod budget;
pub mod cancel_flag;
pub mod clock;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
#[doc(hidden)]
pub mod compatibility_testing;
pub mod disk;
pub mod error;
pub mod fair_clients;
pub mod heap;
pub mod host_policy;
mod in_flight;
pub mod ledger;
pub mod reclaim;
pub mod regular_file;
pub mod request_id;
pub mod request_observer;
pub mod state;
pub mod stats;
pub mod telemetry_stats;
pub mod timer;
pub mod tls_stats;
pub mod upkeep;
