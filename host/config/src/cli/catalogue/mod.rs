//! Every flag: names, kind, default, help text, and whether it is supported.
//!
//! Parsing, `--help`, the keys of a `--config` file and the checks at start read this table. A new
//! flag is one entry in a file of this folder and one line in `config`.

mod access;
mod backends;
mod flag;
mod general;
mod grpc;
mod http;
mod limits;
mod metrics;
mod repository;
mod services;
mod tls;

pub use flag::{FlagKind, FlagSpec, FlagStatus};

pub const SECTIONS: &[(&str, &[FlagSpec])] = &[
    ("General", general::GENERAL),
    ("Logging", general::LOGGING),
    ("Model repository", repository::REPOSITORY),
    ("HTTP", http::HTTP),
    ("gRPC", grpc::GRPC),
    ("Limits", limits::LIMITS),
    ("Connections", limits::CONNECTIONS),
    ("TLS", tls::TLS),
    ("Access", access::ACCESS),
    ("Metrics", metrics::METRICS),
    ("Backends", backends::BACKENDS),
    ("Memory and devices", backends::DEVICES),
    ("Scheduling and cache", services::SCHEDULING),
    ("Tracing", services::TRACING),
    ("Cloud frontends", services::CLOUD),
    ("Older releases", services::OLDER),
];

/// The flag with this name or alias.
pub fn find_flag(name: &str) -> Option<&'static FlagSpec> {
    all_flags().find(|f| f.name == name || f.aliases.contains(&name))
}

/// Every flag, in the order of the table.
pub fn all_flags() -> impl Iterator<Item = &'static FlagSpec> {
    SECTIONS.iter().flat_map(|(_, flags)| flags.iter())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
