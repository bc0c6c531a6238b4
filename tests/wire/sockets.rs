//! Sockets of the listeners: Unix sockets, several addresses, IPv6, shared ports, and keep-alive on
//! each of them.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use tempfile::TempDir;
use trtserver_tests::grpc::INFER;
use trtserver_tests::http1::request;
use trtserver_tests::http2::{Client, End, call_headers};
use trtserver_tests::{
    Connection, ENDPOINTS, InferenceClient, Response, Running, Server, Signal, dist, folder,
    inference, probe, python_v2,
};

const KINDS: [&str; 4] = ["http", "grpc", "metrics", "health"];

fn get(address: &str, path: &str) -> Response {
    Connection::open(address).send(request("GET", path, &[], b"")).response()
}

/// A server whose listeners are all Unix sockets in `folder`, named by their kind.
fn on_unix_sockets(folder: &TempDir) -> Server {
    let socket = |kind: &str| format!("unix:{}", folder.path().join(kind).display());
    Server::new()
        .model("echo", probe("echo", &[]))
        .flag(format!("--http-address={}", socket("http")))
        .flag(format!("--grpc-address={}", socket("grpc")))
        .flag(format!("--metrics-address={}", socket("metrics")))
        .flag(format!("--http-health-address={}", socket("health")))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn unix_sockets_serve_every_endpoint() {
    let folder = folder();
    let umask = ["sh", "-c", "umask 027; exec \"$0\" \"$@\""].map(Into::into);
    let program = umask.into_iter().chain([dist().join("bin/trtserver").into_os_string()]);
    let server = on_unix_sockets(&folder).program(program).start();
    for kind in KINDS {
        let path = folder.path().join(kind);
        assert_eq!(server.addresses(kind), [format!("unix:{}", path.display())]);
        let file = std::fs::symlink_metadata(&path).expect("a socket");
        assert!(file.file_type().is_socket());
        assert_eq!(file.mode() & 0o777, 0o750, "{kind}");
        server.wait_for_log(&format!("at unix:{}", path.display()));
    }
    // HTTP/1.1 keeps its connection.
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.send(inference("echo", "")).response().status, 200);
    }
    let health = server.listening("health");
    assert_eq!(get(&health, "/api/health/ready").status, 200);
    assert_eq!(get(&health, "/v2").status, 404);
    assert_eq!(server.metrics(r#"nv_inference_count{model="echo",version="1"}"#), Some(3.0));
    for endpoint in ENDPOINTS {
        let client = InferenceClient::send(&server, endpoint, "echo", [3.0, 4.0]);
        assert!(client.is_echoed(), "{endpoint:?}");
    }
    python_v2(&server, "v2_sockets.py", &[]);
    assert!(server.stop().success());
    assert!(names(folder.path()).is_empty());
}

#[test]
fn stale_socket_is_replaced_and_live_one_is_not() {
    let folder = folder();
    let killed = on_unix_sockets(&folder).start();
    let path = killed.http().to_owned();
    let refused = on_unix_sockets(&folder).refuses_to_start();
    assert_eq!(refused.code(), 1);
    let text = "a running process listens on this socket";
    assert!(refused.stderr.contains(&format!("unix:{}/", folder.path().display())));
    assert!(refused.stderr.contains(text), "{}", refused.stderr);
    // The refused server has left the sockets alone.
    assert_eq!(get(&path, "/v2/health/ready").status, 200);
    killed.signal(Signal::KILL);
    killed.wait();
    assert_eq!(names(folder.path()), BTreeSet::from(KINDS.map(str::to_owned)));
    let server = on_unix_sockets(&folder).start();
    assert_eq!(get(&path, "/v2/health/ready").status, 200);
    // A server that fails to start removes the sockets that it has opened.
    let other = folder.path().join("other");
    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = port.local_addr().expect("an address").port();
    let failed = Server::new()
        .flag(format!("--grpc-address=unix:{}", other.display()))
        .flag(format!("--http-port={taken}"))
        .refuses_to_start();
    assert!(failed.stderr.contains(&format!("127.0.0.1:{taken}")), "{}", failed.stderr);
    assert!(!other.exists());
    assert!(server.stop().success());
    assert!(names(folder.path()).is_empty());
}

#[test]
fn listeners_have_several_addresses() {
    let folder = folder();
    let socket = format!("unix:{}", folder.path().join("s").display());
    let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
    let mut hosts = vec!["127.0.0.1", "127.0.0.2"];
    if has_ipv6 {
        hosts.push("::1");
    }
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag(format!("--http-address={}", hosts.join(",")))
        .flag(format!("--http-address={socket}"))
        .flag("--grpc-address=127.0.0.2")
        .flag(format!("--grpc-address={}", hosts.join(",")))
        .flag("--http-health-port=0")
        .start();
    let ipv4 = |addresses: &[String], host: &str| {
        addresses.iter().any(|address| address.starts_with(&format!("{host}:")))
    };
    for kind in KINDS {
        let addresses = server.addresses(kind);
        let sockets = addresses.iter().filter(|address| **address == socket).count();
        assert_eq!(sockets, usize::from(kind == "http"), "{kind}: {addresses:?}");
        assert_eq!(addresses.len() - sockets, hosts.len(), "{kind}: {addresses:?}");
        assert!(ipv4(&addresses, "127.0.0.1") && ipv4(&addresses, "127.0.0.2"), "{addresses:?}");
        assert_eq!(has_ipv6, addresses.iter().any(|a| a.starts_with("[::1]:")), "{addresses:?}");
        for address in addresses {
            match kind {
                "grpc" => {
                    let mut client = Client::open(&address);
                    let call = client.call(&call_headers(INFER[0]));
                    client.send(call, &[], true);
                    assert_eq!(client.end(call).end, End::Responded, "{address}");
                }
                "metrics" => assert_eq!(get(&address, "/metrics").status, 200, "{address}"),
                _ => assert_eq!(get(&address, "/v2/health/live").status, 200, "{address}"),
            }
        }
    }
    if has_ipv6 {
        // One port: the IPv6 wildcard leaves IPv4 to the other address.
        let port = server.http().rsplit(':').next().expect("a port").to_owned();
        assert!(server.stop().success());
        let _server = Server::new()
            .flag("--http-address=0.0.0.0,::")
            .flag(format!("--http-port={port}"))
            .start();
        for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
            assert_eq!(get(&address, "/v2/health/live").status, 200, "{address}");
        }
    }
}

#[test]
fn servers_share_ports_with_so_reuseport() {
    let flags = ["--reuse-http-port=true", "--reuse-grpc-port=true"];
    let server = |id: &str, ports: Option<(&str, &str)>| {
        let server = Server::new().flag(flags[0]).flag(flags[1]).flag(format!("--id={id}"));
        let Some((http, grpc)) = ports else { return server };
        server.flag(format!("--http-port={http}")).flag(format!("--grpc-port={grpc}"))
    };
    let port = |address: &str| address.rsplit(':').next().expect("a port").to_owned();
    let one = server("one", None).start();
    let (http, grpc) = (port(one.http()), port(one.grpc()));
    let two = server("two", Some((&http, &grpc))).start();
    // The system distributes connections by a hash of both addresses.
    let mut ids = BTreeSet::new();
    for _ in 0..1000 {
        ids.insert(one.get("/v2").json()["name"].to_string());
        if ids.len() == 2 {
            break;
        }
    }
    assert_eq!(ids.len(), 2, "{ids:?}");
    let refused = Server::new().flag(format!("--http-port={http}")).refuses_to_start();
    assert!(refused.stderr.contains(&format!("127.0.0.1:{http}")), "{}", refused.stderr);
    assert!(one.stop().success());
    assert_eq!(two.get("/v2").json()["name"], "two");
}

#[test]
fn disconnect_on_unix_socket_cancels_executing_request() {
    let folder = folder();
    let server = on_unix_sockets(&folder)
        .model("stuck", probe("stuck", &[("until_cancelled", "true")]))
        .start();
    for (done, endpoint) in ENDPOINTS.into_iter().enumerate() {
        let waits =
            |server: &Running| server.log().matches("the probe waits to be cancelled").count();
        let client = InferenceClient::send(&server, endpoint, "stuck", [1.0, 2.0]);
        server.poll_until("the request is executed", |server| waits(server) > done);
        drop(client);
        let failures =
            r#"nv_inference_request_failure{model="stuck",reason="CANCELED",version="1"}"#;
        server.poll_until(&format!("{endpoint:?} is cancelled"), |server| {
            server.metrics(failures) == Some((done + 1) as f64)
        });
    }
}

#[test]
fn http2_pings_detect_vanished_peers_on_unix_sockets() {
    let folder = folder();
    let server = on_unix_sockets(&folder)
        .flag("--grpc-keepalive-time=50")
        .flag("--grpc-keepalive-timeout=50")
        .start();
    // This client does not answer pings.
    assert_eq!(Client::open(server.grpc()).end(1).end, End::Closed);
}
