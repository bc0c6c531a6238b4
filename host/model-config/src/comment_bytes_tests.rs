//! Unit tests of `comment_bytes.rs`.

use super::*;

#[test]
fn only_comments_are_replaced() {
    for (text, expected) in [
        (&b"name: 'm' # caf\xe9\nplatform: 'p'"[..], "name: 'm' # caf\u{fffd}\nplatform: 'p'"),
        (b"# \xc4\xa3\xd0\xcd\n", "# \u{123}\u{fffd}\u{fffd}\n"),
        (b"#\xff\r\n#\xff", "#\u{fffd}\r\n#\u{fffd}"),
        // What is a comment begins outside of strings.
        (b"name: '#' # '\xff\n", "name: '#' # '\u{fffd}\n"),
        (b"name: '\\'#' # \xff\n", "name: '\\'#' # \u{fffd}\n"),
        (b"name: \"'#\" # \xff\n", "name: \"'#\" # \u{fffd}\n"),
        (b"name: 'open\n# \xff", "name: 'open\n# \u{fffd}"),
        ("name: 'é' # é\n".as_bytes(), "name: 'é' # é\n"),
        (b"", ""),
    ] {
        assert_eq!(String::from_utf8(readable_comments(text)).as_deref(), Ok(expected));
    }
    for text in [&b"name: '#\xff' # \xfe\n"[..], b"na\xffme: 'm' # \xfe\n"] {
        let text = readable_comments(text);
        assert!(text.contains(&0xff) && !text.contains(&0xfe), "{text:?}");
    }
}
