//! Unit tests of `request_status.rs`.

use super::*;
use crate::testing;
use trtserver_proto::text;

#[test]
fn status_prints_as_text() {
    let settings = testing::settings("");
    let old = testing::settings("--model_base_path=/n");
    let error = Error::unavailable("no \"x\"");
    for (status, want) in [
        (success_status(&settings, 7), "code: SUCCESS server_id: \"inference:0\" request_id: 7"),
        (success_status(&old, 7), "code: SUCCESS request_id: 7"),
        (
            failure_status(&settings, &error, 0),
            "code: UNAVAILABLE msg: \"no \\\"x\\\"\" server_id: \"inference:0\"",
        ),
    ] {
        assert_eq!(text::print_line(&status), want);
    }
}

#[test]
fn long_messages_are_truncated_at_char_boundaries() {
    let error = Error::invalid("é".repeat(5000));
    let status = shorten_status(failure_status(&testing::settings(""), &error, 0));
    assert_eq!(status.msg, "é".repeat(2048) + "...");
}
