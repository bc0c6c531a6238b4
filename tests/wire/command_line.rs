//! Command-line parsing: valid flags, and the messages for invalid ones.

use trtserver_tests::{Server, folder, probe, trtserver};

/// Refused with exit status 1 and these first lines on the standard error.
fn refused(args: &[&str], lines: &str) {
    let ended = trtserver(args);
    assert_eq!((ended.code(), ended.stdout.as_str()), (1, ""), "{args:?}: {}", ended.stderr);
    assert!(ended.stderr.starts_with(lines), "{args:?}: {}", ended.stderr);
}

#[test]
fn help_lists_all_flags() {
    let ended = trtserver(["--help"]);
    // As in TRTIS; 0 under the name `tritonserver`.
    assert_eq!(ended.code(), 1);
    for flag in [
        "--model-repository",
        "--model-store",
        "--http-port",
        "--backend-dir",
        "--strict-readiness",
        "--help",
        "--version",
        "trtserver plugin list|check|new",
        "trtserver backend fetch NAME",
    ] {
        assert!(ended.stdout.contains(flag), "no {flag} in {}", ended.stdout);
    }
}

#[test]
fn version_includes_the_abi_version_and_what_was_compiled() {
    let ended = trtserver(["--version"]);
    assert_eq!(ended.code(), 0);
    let mut lines = ended.stdout.lines();
    let (name, rest) = lines.next().and_then(|first| first.split_once(' ')).expect("two words");
    assert!(lines.next().is_some_and(|line| line.starts_with("commit: ")), "{}", ended.stdout);
    assert_eq!(lines.next(), Some("features: object-stores tls"), "{}", ended.stdout);
    let (version, abi) = rest.split_once(" (plugin ABI ").expect("two versions");
    assert_eq!((name, version), ("trtserver", env!("CARGO_PKG_VERSION")));
    let (major, minor) = abi.trim_end_matches(')').split_once('.').expect("major and minor");
    assert!(major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok(), "{abi}");
}

#[test]
fn unknown_flag_is_refused_with_suggestion() {
    refused(
        &["--model-store=/models", "--http-prot=1"],
        "Unrecognized option: --http-prot\nDid you mean --http-port?\n",
    );
    refused(&["--model-store=/models", "stray"], "Unexpected argument: stray\n");
}

#[test]
fn invalid_value_is_refused() {
    for (flag, parts) in [
        ("--http-port=eighty", ["http-port", "eighty"]),
        ("--http-port=70000", ["http-port", "70000"]),
        ("--allow-http=maybe", ["allow-http", "maybe"]),
        ("--log-format=xml", ["log-format", "xml"]),
    ] {
        let ended = trtserver(["--model-store=/models", flag]);
        assert_eq!(ended.code(), 1, "{flag}");
        let first = ended.stderr.lines().next().unwrap_or_default();
        assert!(parts.iter().all(|part| first.contains(part)), "{flag}: {first}");
    }
}

#[test]
fn conflicting_flags_are_refused() {
    refused(&[], "--model-store must be specified\n");
    let store = "--model-store=/models";
    refused(
        &[store, "--allow-http=false", "--allow-grpc=false"],
        "At least one of the following options must be true: --allow-http, --allow-grpc\n",
    );
    refused(
        &[store, "--http-port=8000", "--grpc-port=8000"],
        "The server cannot listen to HTTP requests and gRPC requests at the same port\n",
    );
    refused(
        &[store, "--metrics-port=8000"],
        "The server cannot provide metrics on same port used for HTTP or gRPC requests\n",
    );
}

#[test]
fn one_port_at_different_addresses_serves_two_listeners() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port();
    drop(taken);
    let ports = ["http", "grpc", "metrics"].map(|kind| format!("--{kind}-port={port}"));
    let at = |hosts: [&str; 3]| {
        let kinds = ["http", "grpc", "metrics"].into_iter().zip(hosts);
        kinds.map(|(kind, host)| format!("--{kind}-address={host}")).collect::<Vec<_>>()
    };
    let store = "--model-store=/models".to_owned();
    for hosts in [["0.0.0.0", "127.0.0.2", "127.0.0.3"], ["127.0.0.2", "::", "127.0.0.3"]] {
        let flags = [at(hosts), ports.to_vec(), vec![store.clone()]].concat();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let text = "The server cannot listen to HTTP requests and gRPC requests at the same port\n";
        refused(&flags, text);
    }
    let server = Server::new().model("echo", probe("echo", &[]));
    let flags = [at(["127.0.0.1", "127.0.0.2", "127.0.0.3"]), ports.to_vec()].concat();
    let server = flags.into_iter().fold(server, |server, flag| server.flag(flag)).start();
    assert_eq!(server.get("/v2/health/ready").status, 200);
}

#[test]
fn unsupported_flags_are_refused() {
    let ended = trtserver(["--model-store=/models", "--allow-sagemaker=true"]);
    assert_eq!(ended.code(), 1);
    assert!(ended.stderr.contains("--allow-sagemaker=true"), "{}", ended.stderr);
}

#[test]
fn flag_names_of_both_generations() {
    let echo = || Server::new().model("echo", probe("echo", &[]));
    for flags in [
        &["--exit-timeout-secs", "3", "--log-verbose", "1"][..],
        &["--api-version=2", "--http-thread-count=8", "--disable-auto-complete-config=true"],
        &["--allow-poll-model-repository=false", "--repository-poll-secs=0"],
        &["--tf-allow-soft-placement=true", "--allow-gpu-metrics=false"],
    ] {
        let server = flags.iter().fold(echo(), |server, flag| server.flag(*flag)).start();
        assert_eq!(server.infer("echo", "").status, 200, "{flags:?}");
    }
}

#[test]
fn server_id_and_version() {
    let server = Server::new().flag("--id=left:1").start();
    assert_eq!(server.get("/v2").json()["name"], "left:1");
    let status = server.get("/api/status");
    assert!(status.text().starts_with("id: \"left:1\"\n"), "{}", status.text());
    assert!(status.error_text().contains(r#"server_id: "left:1""#), "{}", status.error_text());
}

#[test]
fn flags_from_a_file() {
    let dir = folder();
    let file = dir.path().join("trtserver.toml");
    let text = "id = \"from the file\"\nstrict_readiness = false\n\nexit-timeout-secs = 1\n";
    std::fs::write(&file, text).unwrap();
    let config = format!("--config={}", file.display());
    let server = Server::new().flag(&config).start();
    assert_eq!(server.get("/v2").json()["name"], "from the file");
    // The command line overrides the file.
    let server = Server::new().flag(&config).flag("--id=typed").start();
    assert_eq!(server.get("/v2").json()["name"], "typed");
    // An error gives its line and column.
    std::fs::write(&file, "id = \"a\"\n\nhttp-prot = 1\n").unwrap();
    let expected = format!(
        "{}:3: there is no flag named http-prot. Did you mean http-port?\n",
        file.display()
    );
    refused(&[&config], &expected);
}
