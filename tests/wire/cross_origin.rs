//! `--http-cors-origin`: preflight requests, and the headers that let pages of other origins read
//! responses.

use crate::tokens::AuthFile;
use trtserver_tests::http1::{Response, request};
use trtserver_tests::{Running, Server, probe};

const APP: &str = "https://app.example";
const INFER: &str = "/v2/models/echo/infer";

fn preflight(server: &Running, path: &str, origin: &str) -> Response {
    let headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,x-mine"),
    ];
    server.send(request("OPTIONS", path, &headers, b""))
}

/// The headers of a response that are about origins.
fn origin_headers(response: &Response) -> [Option<&str>; 3] {
    let names = ["access-control-allow-origin", "access-control-expose-headers", "vary"];
    names.map(|name| response.header(name))
}

#[test]
fn pages_of_named_origins_may_call_the_server() {
    let auth = AuthFile::new("anonymous - read:health\napp {app} infer,read");
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag(auth.flag())
        .flag("--http-cors-origin=http://localhost:5173")
        .flag(format!("--http-cors-origin={APP}"))
        .flag("--control-address=127.0.0.1:0")
        .start();
    // Without a token, on every path.
    for path in [INFER, "/api/infer/echo", "/v2/nothing", "/"] {
        let allowed = preflight(&server, path, APP);
        assert_eq!((allowed.status, allowed.body.len()), (204, 0), "{path}");
        assert_eq!(origin_headers(&allowed)[..2], [Some(APP), None], "{path}");
        for (name, value) in [
            ("access-control-allow-methods", "GET, HEAD, POST"),
            ("access-control-allow-headers", "authorization,x-mine"),
            ("access-control-max-age", "600"),
        ] {
            assert_eq!(allowed.header(name), Some(value), "{path}");
        }
    }
    for origin in ["https://other.example", "https://app.example:444", "null", "*"] {
        let refused = preflight(&server, INFER, origin);
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
        let text = refused.error_text();
        assert!(text.contains(origin) && text.contains("--http-cors-origin"), "{text}");
    }
    // A page reads responses and refusals; a page of another origin is served, and cannot.
    let granted = [Some(APP), Some("*"), Some("origin")];
    let none = [None, None, Some("origin")];
    let token = ("Authorization", "Bearer app-token");
    for (method, path, headers, status, want) in [
        ("GET", "/v2", &[("Origin", APP)][..], 401, granted),
        ("POST", INFER, &[("Origin", APP)], 401, granted),
        ("POST", INFER, &[("Origin", APP), token], 400, granted),
        ("POST", INFER, &[("Origin", "https://other.example"), token], 400, none),
        ("POST", INFER, &[token], 400, none),
        ("GET", "/api/health/live", &[("Origin", APP)], 200, granted),
    ] {
        let response = server.send(request(method, path, headers, br#"{"inputs":[]}"#));
        assert_eq!(response.status, status, "{method} {path} {headers:?}: {}", response.text());
        assert_eq!(origin_headers(&response), want, "{method} {path} {headers:?}");
    }
    // OPTIONS that is not a preflight is refused as before.
    let plain = server.send(request("OPTIONS", INFER, &[("Origin", APP), token], b""));
    assert_eq!((plain.status, origin_headers(&plain)), (405, granted));
}

#[test]
fn every_origin_or_none() {
    let echo = || Server::new().model("echo", probe("echo", &[]));
    let server = echo().flag("--http-cors-origin=*").start();
    let allowed = preflight(&server, INFER, "null");
    assert_eq!((allowed.status, origin_headers(&allowed)[0]), (204, Some("*")));
    for headers in [&[("Origin", "null")][..], &[]] {
        let ready = server.send(request("GET", "/v2/health/ready", headers, b""));
        assert_eq!((ready.status, origin_headers(&ready)), (200, [Some("*"), Some("*"), None]));
    }
    let off = echo().start();
    assert_eq!(preflight(&off, INFER, APP).status, 405);
    let ready = off.send(request("GET", "/v2/health/ready", &[("Origin", APP)], b""));
    assert_eq!((ready.status, origin_headers(&ready)), (200, [None, None, None]));
}
