//! Flags of the HTTP frontends.

use super::flag::{ANY_INT, Flag, Kind, OWN_THREADS, PORT_OR_NONE, flag};

pub(super) const HTTP: &[Flag] = &[
    flag("allow-http", Kind::Bool, "true", "Serve HTTP"),
    flag(
        "http-address",
        Kind::Text("ADDRESS"),
        "0.0.0.0",
        "Addresses of the HTTP listener, separated by commas: IPv4, IPv6, a host name, or unix:PATH for a Unix socket",
    )
    .repeats(),
    flag(
        "http-port",
        PORT_OR_NONE,
        "8000",
        "Port of the HTTP listener; 0 selects a free port for each address, -1 does not serve HTTP",
    ),
    flag(
        "http-health-port",
        PORT_OR_NONE,
        "",
        "Additional port that serves the health endpoints only; -1 serves health over gRPC only",
    ),
    flag(
        "http-health-address",
        Kind::Text("ADDRESS"),
        "",
        "Addresses of the additional listener for health, as for --http-address; by default the TCP addresses of \
         --http-address",
    )
    .repeats(),
    flag(
        "http-max-input-size",
        Kind::Int { min: 1, max: i64::MAX },
        "67108864",
        "Maximum size of an HTTP request body in bytes",
    ),
    flag("http-thread-count", ANY_INT, "", "Number of HTTP threads").no_effect(OWN_THREADS),
    flag(
        "reuse-http-port",
        Kind::Bool,
        "false",
        "Share the HTTP port with other servers that have this flag (SO_REUSEPORT): the system distributes connections",
    ),
    flag(
        "http-header-forward-pattern",
        Kind::Text("REGEX"),
        "",
        "Forward request headers whose name matches to models as string parameters; ignores case unless the pattern begins \
         with (?-i), and names are in lower case",
    ),
    flag(
        "http-restricted-api",
        Kind::Text("APIS:KEY=VALUE"),
        "",
        "Refuse requests without the header KEY: VALUE for these groups of endpoints, separated by commas: health, metadata, \
         inference, shared-memory, model-config, model-repository, statistics, trace, logging. v1 endpoints belong to \
         the same groups",
    )
    .repeats(),
];
