//! Unit tests of `object_absent.rs`: `cargo test --package trtserver --no-default-features object_absent`.

use super::super::{Location, Repositories};
use super::*;
use std::path::PathBuf;

#[test]
fn url_of_an_object_store_is_an_error_that_names_it() {
    let url = PathBuf::from("s3://bucket/models");
    let opened = Repositories::open(std::slice::from_ref(&url), &StoreSettings::default(), false);
    let error = opened.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("'s3://bucket/models' is in an object store"), "{error}");
    let Ok(Location::Object(url)) = Location::parse(&url) else { panic!("not an object store") };
    let checked = check_store(&url, Duration::from_secs(1), &mut Vec::new());
    let error = checked.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("`cargo xtask build`"), "{error}");
}
