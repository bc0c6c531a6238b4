//! Unit tests of `disk.rs`.

use super::*;

#[test]
fn advice_names_both_users_of_a_file_that_may_not_be_read() {
    let denied = || io::Error::from(ErrorKind::PermissionDenied);
    let file = std::env::temp_dir().join(format!("disk-{}", std::process::id()));
    fs::write(&file, "").unwrap();
    let owner = fs::metadata(&file).unwrap().uid();
    let advice = access_advice(&file, &denied());
    fs::remove_file(&file).unwrap();
    let expected =
        format!("; the server runs as user {owner}, and this belongs to user {owner} with mode ");
    assert!(advice.starts_with(&expected), "{advice}");
    let above = format!("; the server runs as user {owner}: let it enter the directories above");
    assert_eq!(access_advice(&file, &denied()), above);
    assert_eq!(access_advice(&file, &io::Error::from(ErrorKind::NotFound)), "");
}
