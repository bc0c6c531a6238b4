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
        let settings = read(&[&format!("--control-address={text}")]).unwrap();
        assert_eq!(settings.access.control, Some(ControlAddress { address, port }), "{text}");
        // The control listener alone takes load requests, and other machines cannot reach it.
        assert!(settings.allow_uploaded_code, "{text}");
    }
    assert!(!read(&["--control-address=0.0.0.0:9000"]).unwrap().allow_uploaded_code);
    assert_eq!(read(&[]).unwrap().access.control, None);
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
        (
            &["--control-address=unix:/run/c", "--http-address=unix:/run/c"],
            "unix:/run/c is given to two listeners",
        ),
    ] {
        let found = read(flags).unwrap_err();
        assert!(found.contains(error), "{flags:?}: {found}");
    }
}
