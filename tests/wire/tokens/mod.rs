//! The auth file: who may do what on every wire, limits, new files, certificates, the control
//! listener, audit lines, and the public clients.

mod clients;
mod control;
mod limits;
mod matrix;
mod reload;

use sha2::{Digest, Sha256};
use std::path::PathBuf;
use tempfile::TempDir;
use trtserver_tests::control::{explicit, pair};
use trtserver_tests::http1::{Connection, Response, request};
use trtserver_tests::http2::{self, Client, Ended, message};
use trtserver_tests::{Running, Server, folder, probe};

/// An auth file that is written again.
pub(crate) struct AuthFile {
    folder: TempDir,
}

impl AuthFile {
    pub(crate) fn new(text: &str) -> Self {
        let this = Self { folder: folder() };
        this.write(text);
        this
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("auth")
    }

    /// `{NAME}` becomes the hash of the token `NAME-token`.
    fn write(&self, text: &str) {
        let mut out = String::new();
        for part in text.split_inclusive(['{', '}']) {
            match part.strip_suffix('}') {
                Some(name) => out.push_str(&hash_of(name)),
                None => out.push_str(part.strip_suffix('{').unwrap_or(part)),
            }
        }
        // As a deployment does it: the file is never half written.
        let next = self.folder.path().join("next");
        std::fs::write(&next, out).unwrap_or_else(|e| panic!("{next:?}: {e}"));
        std::fs::rename(&next, self.path()).unwrap_or_else(|e| panic!("{next:?}: {e}"));
    }

    pub(crate) fn flag(&self) -> String {
        format!("--auth-file={}", self.path().display())
    }
}

/// The SHA-256 of a name's token.
fn hash_of(name: &str) -> String {
    let hash = Sha256::digest(format!("{name}-token"));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The header of a name's token.
fn bearer(name: &str) -> String {
    format!("Bearer {name}-token")
}

/// The models `a-echo` and `b-echo`, and the ensemble `a-pair` of two steps of `b-echo`, loaded.
fn server(file: &AuthFile) -> Server {
    let pair = pair("b-echo").replace("\"pair\"", "\"a-pair\"");
    explicit()
        .model("a-echo", probe("a-echo", &[]))
        .model("b-echo", probe("b-echo", &[]))
        .model("a-pair", pair)
        .flag("--load-model=*")
        .flag("--allow-client-shm=true")
        .flag(file.flag())
}

/// A request over HTTP with the token of `name`.
pub(crate) fn send(
    address: &str,
    name: Option<&str>,
    method: &str,
    path: &str,
    body: &[u8],
) -> Response {
    let token = name.map(bearer);
    let headers: Vec<_> = token.iter().map(|token| ("Authorization", token.as_str())).collect();
    Connection::open(address).send(request(method, path, &headers, body)).response()
}

/// A gRPC call with the token of `name`.
pub(crate) fn call(server: &Running, name: Option<&str>, path: &str, contents: &[u8]) -> Ended {
    let token = name.map(bearer);
    let mut headers = http2::call_headers(path);
    headers.extend(token.iter().map(|token| ("authorization", token.as_str())));
    let mut client = Client::open(server.grpc());
    let call = client.call(&headers);
    client.send(call, &message(contents), true);
    client.end(call)
}

/// The value of a metric, read with the token of `admin`.
fn metric(server: &Running, sample: &str) -> f64 {
    let page = send(server.metrics_address(), Some("admin"), "GET", "/metrics", b"").text();
    let value = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{sample}:\n{page}"))
}
