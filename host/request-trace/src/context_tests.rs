//! Unit tests of `context.rs`.

use super::TraceContext;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn valid_contexts_are_read() {
    for (parent, state, flags, kept) in [
        (PARENT, Some("a=1,b=2"), 1, "a=1,b=2"),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", None, 0, ""),
        // A later version with a field that is not known yet.
        ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-new", None, 3, ""),
        (PARENT, Some("a=\u{e9}"), 1, ""),
    ] {
        let context = TraceContext::parse(parent.as_bytes(), state.map(str::as_bytes)).unwrap();
        assert_eq!((context.flags, &*context.state), (flags, kept), "{parent}");
        assert_eq!(context.trace_id[..2], [0x0a, 0xf7]);
        assert_eq!(context.span_id[7], 0x31);
        assert_eq!(context.is_sampled(), flags & 1 == 1);
    }
}

#[test]
fn invalid_contexts_are_ignored() {
    for parent in [
        "",
        "00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
    ] {
        assert_eq!(TraceContext::parse(parent.as_bytes(), None), None, "{parent}");
    }
}
