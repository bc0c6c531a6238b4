//! Flags of the gRPC frontends.

use super::flag::{ANY_INT, FlagKind, FlagSpec, OWN_THREADS, PORT_OR_NONE, flag_spec};

const NO_POOL: &str = "the server has no such memory pool";
const PINGS_ALWAYS: &str = "with --grpc-keepalive-time, connections without calls are pinged, too: the HTTP/2 library cannot leave them out";
const PINGS_UNLIMITED: &str =
    "keep-alive pings are sent at any number between data frames: the HTTP/2 library has no limit";
const PINGS_ANSWERED: &str = "pings of clients are always answered and never close a connection: the HTTP/2 library does not count them";

pub(super) const GRPC: &[FlagSpec] = &[
    flag_spec("allow-grpc", FlagKind::Bool, "true", "Serve gRPC"),
    flag_spec(
        "grpc-address",
        FlagKind::Text("ADDRESS"),
        "0.0.0.0",
        "Addresses of the gRPC listener, as for --http-address",
    )
    .repeats(),
    flag_spec(
        "grpc-port",
        PORT_OR_NONE,
        "8001",
        "Port of the gRPC listener; 0 selects a free port for each address, -1 does not serve gRPC",
    ),
    flag_spec(
        "reuse-grpc-port",
        FlagKind::Bool,
        "false",
        "Share the gRPC port with other servers that have this flag (SO_REUSEPORT): the system distributes connections",
    ),
    flag_spec(
        "grpc-header-forward-pattern",
        FlagKind::Text("REGEX"),
        "",
        "Forward request metadata whose name matches to models as string parameters; ignores case unless the pattern begins \
         with (?-i)",
    ),
    flag_spec("grpc-infer-thread-count", ANY_INT, "", "Number of threads for ModelInfer")
        .no_effect(OWN_THREADS),
    flag_spec("grpc-stream-infer-thread-count", ANY_INT, "", "Number of threads for ModelStreamInfer")
        .no_effect(OWN_THREADS),
    flag_spec(
        "grpc-infer-allocation-pool-size",
        ANY_INT,
        "",
        "Number of request objects kept for reuse",
    )
    .no_effect(NO_POOL),
    flag_spec(
        "grpc-max-response-pool-size",
        ANY_INT,
        "",
        "Maximum number of queued responses per stream",
    )
    .no_effect("unread responses are limited by --max-unread-per-stream"),
    flag_spec("grpc-use-ssl", FlagKind::Bool, "false", "Serve gRPC over TLS"),
    flag_spec(
        "grpc-use-ssl-mutual",
        FlagKind::Bool,
        "false",
        "Require a client certificate (mutual TLS); given with any value, it enables TLS, as in Triton",
    ),
    flag_spec("grpc-server-cert", FlagKind::Path("FILE"), "", "Server certificate of --grpc-use-ssl, PEM"),
    flag_spec("grpc-server-key", FlagKind::Path("FILE"), "", "Private key of --grpc-server-cert, PEM"),
    flag_spec(
        "grpc-root-cert",
        FlagKind::Path("FILE"),
        "",
        "Authorities of the client certificates of --grpc-use-ssl-mutual, PEM",
    ),
    flag_spec(
        "grpc-infer-response-compression-level",
        FlagKind::Choice(&["none", "low", "medium", "high"]),
        "none",
        "Compress inference responses for clients that accept gzip or deflate",
    ),
    flag_spec(
        "grpc-keepalive-time",
        FlagKind::Count,
        "",
        "Interval of HTTP/2 keep-alive pings in milliseconds; by default none, see --tcp-keepalive-secs",
    ),
    flag_spec(
        "grpc-keepalive-timeout",
        FlagKind::Count,
        "20000",
        "Timeout of an HTTP/2 keep-alive ping in milliseconds",
    ),
    flag_spec(
        "grpc-keepalive-permit-without-calls",
        FlagKind::Bool,
        "true",
        "Send keep-alive pings without active calls",
    )
    .warns(&["true"], PINGS_ALWAYS),
    flag_spec(
        "grpc-http2-max-pings-without-data",
        FlagKind::Count,
        "0",
        "Maximum number of pings between two data frames",
    )
    .warns(&["0"], PINGS_UNLIMITED),
    flag_spec(
        "grpc-http2-min-recv-ping-interval-without-data",
        FlagKind::Count,
        "0",
        "Minimum interval of client pings in milliseconds",
    )
    .warns(&["0"], PINGS_ANSWERED),
    flag_spec(
        "grpc-http2-max-ping-strikes",
        FlagKind::Count,
        "0",
        "Number of client pings above the limit before the connection is closed",
    )
    .warns(&["0"], PINGS_ANSWERED),
    flag_spec(
        "grpc-max-connection-age",
        FlagKind::Count,
        "",
        "Maximum age of a gRPC connection in milliseconds; by default --max-connection-age-secs",
    ),
    flag_spec(
        "grpc-max-connection-age-grace",
        FlagKind::Count,
        "",
        "Grace period in milliseconds for the calls of an aged connection; by default none",
    ),
    flag_spec(
        "grpc-restricted-protocol",
        FlagKind::Text("APIS:KEY=VALUE"),
        "",
        "Refuse RPCs of these groups without the metadata triton-grpc-protocol-KEY: VALUE; groups as for --http-restricted-api",
    )
    .repeats(),
];
