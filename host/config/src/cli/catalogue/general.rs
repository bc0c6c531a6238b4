//! General flags and flags of the log.

use super::flag::{FlagKind, FlagSpec, flag_spec};

pub(super) const GENERAL: &[FlagSpec] = &[
    flag_spec(
        "config",
        FlagKind::Path("FILE"),
        "",
        "Read flags from a TOML file: keys are flag names, repeatable flags take a list. The \
         command line takes precedence",
    ),
    flag_spec(
        "id",
        FlagKind::Text("NAME"),
        "",
        "Server name in server metadata and status; by default triton for v2 clients and inference:0 for v1 clients",
    ),
    flag_spec("exit-on-error", FlagKind::Bool, "true", "Exit if the server or a model fails to start"),
    flag_spec(
        "exit-timeout-secs",
        FlagKind::Count,
        "30",
        "Grace period in seconds for in-flight requests at shutdown",
    ),
    flag_spec(
        "exit-sequence-timeout-secs",
        FlagKind::Count,
        "5",
        "Grace period in seconds for sequences that have not ended at shutdown",
    ),
    flag_spec(
        "drain-delay-secs",
        FlagKind::Count,
        "0",
        "How long the server accepts requests after SIGTERM while it reports that it is not ready, so that load balancers \
         stop sending requests before the shutdown refuses them",
    ),
    flag_spec(
        "load-reports",
        FlagKind::Choice(&["asked", "always", "off"]),
        "asked",
        "Which responses to inference have a load report of ORCA: those whose request asks for one, or all",
    ),
    flag_spec(
        "queue-wait-target-ms",
        FlagKind::Int { min: 1, max: 86_400_000 },
        "100",
        "The wait in a queue that is still good, for the utilization in load reports and --refuse-late-requests; models whose \
         queue has a timeout are measured by that",
    ),
    flag_spec(
        "refuse-late-requests",
        FlagKind::Bool,
        "false",
        "Refuse requests at once that would wait longer in their queue than its timeout, their own, or \
         --queue-wait-target-ms, or end after their deadline",
    ),
    flag_spec(
        "strict-readiness",
        FlagKind::Bool,
        "true",
        "Report the server as ready only while all model versions are ready",
    ),
    flag_spec(
        "ready-models",
        FlagKind::Text("NAME"),
        "",
        "Models that strict readiness requires, separated by commas, instead of all: the server is ready while each of them \
         is served, whatever the others do",
    )
    .repeats(),
    flag_spec("api-version", FlagKind::Int { min: 1, max: 2 }, "", "Protocol generation to serve")
        .no_effect("the server always serves both generations"),
];

pub(super) const LOGGING: &[FlagSpec] = &[
    flag_spec("log-info", FlagKind::Bool, "true", "Log messages of level info"),
    flag_spec("log-warning", FlagKind::Bool, "true", "Log messages of level warning"),
    flag_spec("log-error", FlagKind::Bool, "true", "Log messages of level error"),
    flag_spec(
        "log-verbose",
        FlagKind::Verbosity,
        "0",
        "Verbosity of the log: 1 adds steps, 2 adds requests, 3 and 4 add messages of libraries",
    ),
    flag_spec(
        "log-format",
        FlagKind::Choice(&["default", "ISO8601", "json"]),
        "default",
        "Format of log lines",
    ),
    flag_spec("log-json", FlagKind::Bool, "false", "Same as --log-format=json"),
    flag_spec(
        "log-file",
        FlagKind::Path("FILE"),
        "",
        "Append log lines to this file instead of writing to standard error",
    ),
    flag_spec(
        "access-log",
        FlagKind::Path("FILE"),
        "",
        "Append a line of JSON for each request over HTTP and gRPC to this file; - for standard output",
    ),
];
