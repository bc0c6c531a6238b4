//! Unit tests of `message.rs`.

use super::shorten_text;

#[test]
fn body_is_reduced_to_code_and_message() {
    let text = "Error performing GET http://host/bucket in 3ms - Server returned non-2xx status code: 400 Bad Request: \
        <?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message>\
        <Token-0>SECRET</Token-0></Error>";
    let short = shorten_text(text);
    assert!(
        short.ends_with("400 Bad Request: ExpiredToken: The provided token has expired."),
        "{short}"
    );
}

#[test]
fn long_text_is_cut() {
    let short = shorten_text(&"é".repeat(1000));
    assert!(short.len() <= 510 && short.ends_with('…'), "{}", short.len());
}
