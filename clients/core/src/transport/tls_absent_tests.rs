//! Unit tests of `tls_absent.rs`.

use super::*;

#[test]
fn address_with_tls_is_an_error_that_names_it() {
    for (url, is_refused) in [
        ("https://models.example:8443", true),
        ("grpcs://models.example", true),
        ("http://models.example", false),
        ("unix:/run/models", false),
    ] {
        let settings = Settings::new(url);
        let address = ServerAddress::parse(&settings).unwrap();
        let error = tls_client(&address, &settings).err().map(|e| e.to_string());
        assert_eq!(error.is_some(), is_refused, "{url}: {error:?}");
        if let Some(error) = error {
            assert!(error.contains(&address.shown) && error.contains("needs TLS"), "{error}");
        }
    }
}
