//! Oracles for fuzzing: each takes bytes as a client, a configuration file or a child process could
//! send them, and panics when a property does not hold. `fuzz/` drives them with libFuzzer; a unit
//! test runs them over the seeds in `fuzz/seeds`.
//!
//! Not part of the server: compiled for tests and with the feature `fuzzing`.

mod administration;
mod block_on;
mod config;
mod grpc;
mod http;
mod isolation;
mod isolation_work;
mod region_request;
mod wire_format;

pub use administration::{access_flags, auth_file, v2_log_settings};
pub use config::{model_config, v1_header};
pub use grpc::{grpc_v2_call, grpc_v2_fast_path};
pub use http::{v1_infer, v2_binary, v2_generate, v2_json};
pub use isolation::isolation_control;
pub use isolation_work::isolation_work;
pub use region_request::v1_region_request;
pub use wire_format::wire_format;

/// Panics when its property does not hold for these bytes.
pub type FuzzOracle = fn(&[u8]);

/// All oracles by the names of their fuzz targets and seed folders.
pub const ORACLES: &[(&str, FuzzOracle)] = &[
    ("access_flags", access_flags),
    ("auth_file", auth_file),
    ("grpc_v2_call", grpc_v2_call),
    ("grpc_v2_fast_path", grpc_v2_fast_path),
    ("isolation_control", isolation_control),
    ("isolation_work", isolation_work),
    ("model_config", model_config),
    ("v1_header", v1_header),
    ("v1_infer", v1_infer),
    ("v1_region_request", v1_region_request),
    ("v2_binary", v2_binary),
    ("v2_generate", v2_generate),
    ("v2_json", v2_json),
    ("v2_log_settings", v2_log_settings),
    ("wire_format", wire_format),
];

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
