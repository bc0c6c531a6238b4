//! Every flag: names, kind, default, help text, and whether it is supported.
//!
//! Parsing, `--help`, the keys of a `--config` file and the checks at start read this table. A new flag is one entry
//! in a file of this folder and one line in `config`.

mod backends;
mod flag;
mod general;
mod grpc;
mod http;
mod limits;
mod metrics;
mod repository;
mod services;

pub use flag::{Flag, Kind, Status};

pub const SECTIONS: &[(&str, &[Flag])] = &[
    ("General", general::GENERAL),
    ("Logging", general::LOGGING),
    ("Model repository", repository::REPOSITORY),
    ("HTTP", http::HTTP),
    ("gRPC", grpc::GRPC),
    ("Limits", limits::LIMITS),
    ("Connections", limits::CONNECTIONS),
    ("Metrics", metrics::METRICS),
    ("Backends", backends::BACKENDS),
    ("Memory and devices", backends::DEVICES),
    ("Scheduling and cache", services::SCHEDULING),
    ("Tracing", services::TRACING),
    ("Cloud frontends", services::CLOUD),
    ("Older releases", services::OLDER),
];

/// The flag with this name or alias.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|f| f.name == name || f.aliases.contains(&name))
}

/// Every flag, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().flat_map(|(_, flags)| flags.iter())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
