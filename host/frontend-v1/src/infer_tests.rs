//! Unit tests of `infer.rs`.

use super::*;

#[test]
fn code_that_old_clients_do_not_know_is_not_sent() {
    let error = with_known_code(Error::new(Code::AlreadyExists, "x"));
    assert_eq!(error, Error::invalid("x"));
}
