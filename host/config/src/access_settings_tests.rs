//! Unit tests of `access_settings.rs`.

use super::*;

fn read(flags: &[&str]) -> Result<crate::ServerSettings, String> {
    let args = ["trtserver", "--model-store=/m"].iter().chain(flags).map(std::ffi::OsString::from);
    let start = crate::from_args(args, &|_| None, "1").map_err(|exit| exit.stderr)?;
    Ok(start.settings)
}

#[test]
fn control_addresses_are_read() {
    for (text, address, port) in [
        ("127.0.0.1:9000", ListenAddress::Host("127.0.0.1".into()), 9000),
        ("[::1]:0", ListenAddress::Host("::1".into()), 0),
        ("unix:/run/control", ListenAddress::Unix("/run/control".into()), 0),
    ] {
        let control = Some(ControlAddress { address, port });
        let http = read(&[&format!("--control-address={text}")]).unwrap();
        assert_eq!((&http.access.control, &http.access.control_grpc), (&control, &None), "{text}");
        let grpc = read(&[&format!("--control-grpc-address={text}")]).unwrap();
        assert_eq!((&grpc.access.control, &grpc.access.control_grpc), (&None, &control), "{text}");
        for settings in [http, grpc] {
            assert!(settings.access.has_control_listener());
            // The control listener alone takes load requests, and other machines cannot reach it.
            assert!(settings.allow_uploaded_code, "{text}");
        }
    }
    let open = "--control-grpc-address=0.0.0.0:9000";
    assert!(!read(&["--control-address=0.0.0.0:9000"]).unwrap().allow_uploaded_code);
    assert!(!read(&["--control-address=unix:/run/c", open]).unwrap().allow_uploaded_code);
    assert!(!read(&[]).unwrap().access.has_control_listener());
}

#[test]
fn values_that_cannot_be_used_are_refused() {
    for (flags, error) in [
        (
            &["--control-address=host"][..],
            "--control-address=host: expected HOST:PORT or unix:PATH",
        ),
        (&["--control-address=host:http"], "expected HOST:PORT or unix:PATH"),
        (&["--control-address="], "--control-address=: expected HOST:PORT or unix:PATH"),
        (&["--auth-file="], "--auth-file: expected the path of a file, found an empty value"),
        (&["--control-address=:1"], "an address is empty"),
        (&["--control-address=unix:"], "expected a path after unix:"),
        (
            &["--control-address=127.0.0.1:8000"],
            "--control-address has the port of another listener",
        ),
        (&["--control-grpc-address=host"], "--control-grpc-address=host: expected HOST:PORT"),
        (
            &["--control-grpc-address=127.0.0.1:8001"],
            "--control-grpc-address has the port of another listener",
        ),
        (
            &["--control-address=127.0.0.1:7000", "--control-grpc-address=127.0.0.1:7000"],
            "--control-grpc-address has the port of another listener",
        ),
        (
            &["--control-address=unix:/run/c", "--http-address=unix:/run/c"],
            "unix:/run/c is given to two listeners",
        ),
    ] {
        let found = read(flags).unwrap_err();
        assert!(found.contains(error), "{flags:?}: {found}");
    }
}
