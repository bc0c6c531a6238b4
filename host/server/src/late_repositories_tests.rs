//! Unit tests of `late_repositories.rs`.

use super::*;

#[test]
fn directory_that_does_not_come_is_named_after_the_limit() {
    let here = std::env::temp_dir();
    let absent = here.join("no such repository of late_repositories_tests");
    assert!(
        wait_for_directories(&[here.clone(), "s3://bucket/models".into()], Duration::ZERO).is_ok()
    );
    let error = wait_for_directories(&[here, absent.clone()], Duration::ZERO).unwrap_err();
    let expected = format!("model repository '{}' is not a directory 0 s after", absent.display());
    assert!(error.message.starts_with(&expected), "{}", error.message);
}
