//! Unit tests of `object_absent.rs`.

use super::super::StoreLocation;
use super::*;
use std::path::Path;

#[test]
fn url_of_an_object_store_is_an_error_that_names_it() {
    let location = StoreLocation::parse(Path::new("s3://bucket/models"));
    let Ok(StoreLocation::Object(url)) = location else { panic!("{location:?}") };
    let settings = StoreSettings::default();
    let mut opener = ObjectStoreOpener::new(&settings);
    let opened = opener.open_repository(&url).err();
    let checked = check_store(&url, Duration::from_secs(1), &mut Vec::new()).err();
    for error in [opened.map(|e| e.to_string()), checked.map(|e| e.to_string())] {
        let error = error.unwrap();
        assert!(error.contains("'s3://bucket/models' is in an object store"), "{error}");
        assert!(error.contains("`cargo xtask build`"), "{error}");
    }
    assert!(opener.cache().is_none());
}
