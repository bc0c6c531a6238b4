//! Flags of limits on requests, responses and connections.

use super::flag::{BYTES, FlagKind, FlagSpec, POSITIVE, flag_spec};

pub(super) const LIMITS: &[FlagSpec] = &[
    flag_spec(
        "max-request-memory",
        FlagKind::Size,
        "",
        "Memory that all requests and responses together may hold; by default half of the memory \
         that the process may use",
    ),
    flag_spec(
        "max-unread-per-stream",
        FlagKind::Size,
        "16M",
        "Responses of one gRPC stream that its client has not read, in bytes. At the limit a \
         decoupled model waits, and no further requests of the stream are read",
    ),
    flag_spec(
        "max-unread-per-connection",
        FlagKind::Size,
        "256M",
        "Responses of one connection that its client has not read, in bytes. At half of the limit \
         further calls of the connection wait, above it responses to earlier ones are replaced by \
         errors",
    ),
    flag_spec(
        "unread-timeout-secs",
        POSITIVE,
        "30",
        "How long a model waits for a client that reads no response before its request fails",
    ),
    flag_spec(
        "http-max-body-size",
        FlagKind::Size,
        "2147483647",
        "Maximum size of an HTTP request body as it is sent",
    ),
    flag_spec(
        "grpc-max-message-size",
        FlagKind::Size,
        "2147483647",
        "Maximum size of a gRPC inference request as it is sent",
    ),
    flag_spec(
        "grpc-max-expanded-size",
        FlagKind::Size,
        "256M",
        "Maximum size of a compressed gRPC inference request after decompression; over HTTP, \
         --http-max-input-size applies",
    ),
    flag_spec(
        "decode-thread-count",
        POSITIVE,
        "",
        "Number of threads for heavy decoding and encoding: compression, JSON and other messages \
         that must be converted; by default one per CPU core less one",
    ),
];

pub(super) const CONNECTIONS: &[FlagSpec] = &[
    flag_spec(
        "max-connections",
        BYTES,
        "",
        "Maximum number of connections over HTTP and gRPC, 0 for no limit; by default what the limit of open files \
         allows, less a reserve. At the limit, the connection that was idle longest is closed",
    ),
    flag_spec(
        "max-open-calls",
        BYTES,
        "65536",
        "Maximum number of gRPC calls that are open at a time on all connections together, 0 for no limit. 16 inference \
         calls and 8 others of each connection are never refused",
    ),
    flag_spec(
        "first-message-timeout-secs",
        FlagKind::Count,
        "30",
        "Time limit in seconds for the first message of a gRPC stream; 0 for none",
    ),
    flag_spec(
        "request-header-timeout-secs",
        FlagKind::Count,
        "30",
        "Time limit in seconds for the head of a request, from its first byte; 0 for none",
    ),
    flag_spec(
        "request-body-timeout-secs",
        FlagKind::Count,
        "30",
        "Time limit in seconds for the body of a request, extended by a second for each --request-body-min-rate \
         bytes that have arrived; 0 for none",
    ),
    flag_spec(
        "request-body-min-rate",
        BYTES,
        "1024",
        "Minimum rate of a request body in bytes per second, after --request-body-timeout-secs; 0 never extends it",
    ),
    flag_spec(
        "idle-timeout-secs",
        FlagKind::Count,
        "300",
        "Close connections after this time in seconds without a request, or when a client does not read its \
         response for so long; 0 for never",
    ),
    flag_spec(
        "max-connection-age-secs",
        FlagKind::Count,
        "0",
        "End connections after this time in seconds, once their requests are complete; 0 for never",
    ),
    flag_spec(
        "tcp-keepalive-secs",
        FlagKind::Count,
        "60",
        "Interval in seconds of TCP keep-alive probes, of which three without an answer close a connection; 0 for none",
    ),
];
