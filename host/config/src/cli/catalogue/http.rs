//! Flags of the HTTP frontends.

use super::flag::{ANY_INT, FlagKind, FlagSpec, OWN_THREADS, PORT_OR_NONE, flag_spec};

pub(super) const HTTP: &[FlagSpec] = &[
    flag_spec("allow-http", FlagKind::Bool, "true", "Serve HTTP"),
    flag_spec(
        "http-address",
        FlagKind::Text("ADDRESS"),
        "0.0.0.0",
        "Addresses of the HTTP listener, separated by commas: IPv4, IPv6, a host name, or unix:PATH for a Unix socket",
    )
    .repeats(),
    flag_spec(
        "http-port",
        PORT_OR_NONE,
        "8000",
        "Port of the HTTP listener; 0 selects a free port for each address, -1 does not serve HTTP",
    ),
    flag_spec(
        "listen-when-ready",
        FlagKind::Bool,
        "",
        "Open the ports for HTTP, gRPC and metrics when the models are loaded, so that a TCP probe does not find them \
         before; those of --http-health-port open at once. The default is true under the program name tritonserver, as in \
         Triton, and false under others",
    ),
    flag_spec(
        "http-health-port",
        PORT_OR_NONE,
        "",
        "Additional port that serves the health endpoints only; -1 serves health over gRPC only",
    ),
    flag_spec(
        "http-health-address",
        FlagKind::Text("ADDRESS"),
        "",
        "Addresses of the additional listener for health, as for --http-address; by default the TCP addresses of \
         --http-address",
    )
    .repeats(),
    flag_spec(
        "http-max-input-size",
        FlagKind::Int { min: 1, max: i64::MAX },
        "67108864",
        "Maximum size of an HTTP request body in bytes",
    ),
    flag_spec(
        "ui",
        FlagKind::Bool,
        "true",
        "Serve the status page at / of the HTTP port, and keep the last lines of the log in memory for it",
    ),
    flag_spec(
        "http-cors-origin",
        FlagKind::Text("ORIGIN"),
        "",
        "Let pages of this origin (SCHEME://HOST[:PORT]) call the HTTP port from a browser, or with * the pages of every \
         origin; no other origin's by default",
    )
    .repeats(),
    flag_spec("http-thread-count", ANY_INT, "", "Number of HTTP threads").no_effect(OWN_THREADS),
    flag_spec(
        "reuse-http-port",
        FlagKind::Bool,
        "false",
        "Share the HTTP port with other servers that have this flag (SO_REUSEPORT): the system distributes connections",
    ),
    flag_spec(
        "http-header-forward-pattern",
        FlagKind::Text("REGEX"),
        "",
        "Forward request headers whose name matches to models as string parameters; ignores case unless the pattern begins \
         with (?-i), and names are in lower case",
    ),
    flag_spec(
        "http-restricted-api",
        FlagKind::Text("APIS:KEY=VALUE"),
        "",
        "Refuse requests without the header KEY: VALUE for these groups of endpoints, separated by commas: health, metadata, \
         inference, shared-memory, model-config, model-repository, statistics, trace, logging. v1 endpoints belong to \
         the same groups",
    )
    .repeats(),
];
