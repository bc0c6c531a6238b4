//! Flags of TLS.

use super::flag::{FlagKind, FlagSpec, POSITIVE, flag_spec};

const CERTIFICATE: &str =
    "Certificate of this listener in place of --tls-cert, PEM; needs the listener's own key";
const KEY: &str = "Private key of this listener's certificate, PEM";
const CLIENT_CA: &str = "Authorities of client certificates at this listener in place of --tls-client-ca, PEM; an empty \
     value: clients need no certificate";
const SWITCH: &str =
    "off: this listener has no TLS. on: it must have it. By default as --tls-cert says";

const fn file(name: &'static str, help: &'static str) -> FlagSpec {
    flag_spec(name, FlagKind::Path("FILE"), "", help)
}

const fn switch(name: &'static str) -> FlagSpec {
    flag_spec(name, FlagKind::Bool, "", SWITCH)
}

pub(super) const TLS: &[FlagSpec] = &[
    file(
        "tls-cert",
        "Certificate of all listeners, PEM, followed by those of its authorities; with it, TCP listeners accept only TLS",
    ),
    file("tls-key", "Private key of --tls-cert, PEM"),
    file(
        "tls-client-ca",
        "Authorities of client certificates, PEM; with it, every client must show a certificate signed by one of them",
    ),
    flag_spec(
        "tls-reload-secs",
        FlagKind::Count,
        "10",
        "Interval in seconds at which the files of TLS are read again; 0: on SIGHUP only",
    ),
    flag_spec(
        "tls-handshake-timeout-secs",
        FlagKind::Count,
        "10",
        "Time limit in seconds for a TLS handshake; 0 for none",
    ),
    flag_spec(
        "tls-max-handshakes",
        POSITIVE,
        "1024",
        "Maximum number of TLS handshakes at a time over HTTP and gRPC. At the limit, the oldest of those that take longer \
         than a second is closed",
    ),
    switch("http-tls"),
    file("http-tls-cert", CERTIFICATE),
    file("http-tls-key", KEY),
    file("http-tls-client-ca", CLIENT_CA),
    switch("grpc-tls"),
    file("grpc-tls-cert", CERTIFICATE),
    file("grpc-tls-key", KEY),
    file("grpc-tls-client-ca", CLIENT_CA),
    switch("metrics-tls"),
    file("metrics-tls-cert", CERTIFICATE),
    file("metrics-tls-key", KEY),
    file("metrics-tls-client-ca", CLIENT_CA),
    switch("health-tls"),
    file("health-tls-cert", CERTIFICATE),
    file("health-tls-key", KEY),
    file("health-tls-client-ca", CLIENT_CA),
];
