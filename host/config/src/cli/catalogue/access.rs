//! Flags that say who may do what.

use super::flag::{FlagKind, FlagSpec, flag_spec};

pub(super) const ACCESS: &[FlagSpec] = &[
    flag_spec(
        "auth-file",
        FlagKind::Path("FILE"),
        "",
        "File of names, with the SHA-256 of their tokens or names in their certificates, what they may do, and their \
         limits; with it, every request needs a name that may do it",
    ),
    flag_spec(
        "auth-reload-secs",
        FlagKind::Count,
        "10",
        "Interval in seconds at which --auth-file is read again; 0: on SIGHUP only",
    ),
    flag_spec(
        "control-grpc-address",
        FlagKind::Text("HOST:PORT|unix:PATH"),
        "",
        "The same over gRPC; with either of them, control is served at control listeners only",
    ),
    flag_spec(
        "control-address",
        FlagKind::Text("HOST:PORT|unix:PATH"),
        "",
        "Listener for control over HTTP; with it, model repository, shared memory, trace and log settings are served there \
         only",
    ),
];
