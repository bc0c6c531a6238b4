//! General flags and flags of the log.

use super::flag::{Flag, Kind, flag};

pub(super) const GENERAL: &[Flag] = &[
    flag(
        "config",
        Kind::Path("FILE"),
        "",
        "Read flags from a TOML file: keys are flag names, repeatable flags take a list. The \
         command line takes precedence",
    ),
    flag(
        "id",
        Kind::Text("NAME"),
        "",
        "Server name in server metadata and status; by default triton for v2 clients and inference:0 for v1 clients",
    ),
    flag("exit-on-error", Kind::Bool, "true", "Exit if the server or a model fails to start"),
    flag(
        "exit-timeout-secs",
        Kind::Count,
        "30",
        "Grace period in seconds for in-flight requests at shutdown",
    ),
    flag(
        "exit-sequence-timeout-secs",
        Kind::Count,
        "5",
        "Grace period in seconds for sequences that have not ended at shutdown",
    ),
    flag(
        "strict-readiness",
        Kind::Bool,
        "true",
        "Report the server as ready only while all model versions are ready",
    ),
    flag(
        "ready-models",
        Kind::Text("NAME"),
        "",
        "Models that strict readiness requires, separated by commas, instead of all: the server is ready while each of them \
         is served, whatever the others do",
    )
    .repeats(),
    flag("api-version", Kind::Int { min: 1, max: 2 }, "", "Protocol generation to serve")
        .no_effect("the server always serves both generations"),
];

pub(super) const LOGGING: &[Flag] = &[
    flag("log-info", Kind::Bool, "true", "Log messages of level info"),
    flag("log-warning", Kind::Bool, "true", "Log messages of level warning"),
    flag("log-error", Kind::Bool, "true", "Log messages of level error"),
    flag(
        "log-verbose",
        Kind::Verbosity,
        "0",
        "Verbosity of the log: 1 adds steps, 2 adds requests, 3 and 4 add messages of libraries",
    ),
    flag(
        "log-format",
        Kind::Choice(&["default", "ISO8601", "json"]),
        "default",
        "Format of log lines",
    ),
    flag("log-json", Kind::Bool, "false", "Same as --log-format=json"),
    flag(
        "log-file",
        Kind::Path("FILE"),
        "",
        "Append log lines to this file instead of writing to standard error",
    ),
];
