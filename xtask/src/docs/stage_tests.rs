//! Unit tests of `stage.rs`.

use super::*;

#[test]
fn links_to_what_is_not_in_the_book_lose_their_address() {
    let page = "See [the\nsource](a.rs), [b](b.md) and `[c](c.rs)`: [d](d.rs#L1)[e](e.md).\n";
    let text = keep_links(page, |target| target.ends_with(".md"));
    assert_eq!(text, "See the\nsource, [b](b.md) and `[c](c.rs)`: d[e](e.md).\n");
}

#[test]
fn contents_have_paths_from_the_top() {
    let summary = "# Contents\n\n- [A](a.md)\n  - [P](../plugins/x/README.md)\n";
    let want = "# Contents\n\n- [A](docs/a.md)\n  - [P](plugins/x/README.md)\n";
    assert_eq!(from_top(summary), want);
}

#[test]
fn references_are_listed_with_addresses_from_their_page() {
    let page = SourcePage {
        title: "C: a.h".to_owned(),
        file: "docs/c-reference/a.md".to_owned(),
        text: String::new(),
    };
    let beside = ("Rust: b".to_owned(), "api/rust/b/index.html".to_owned());
    let text = reference_page(&References { pages: vec![page], beside: vec![beside] });
    let want = "- [C: a.h](../docs/c-reference/a.md)\n- [Rust: b](../api/rust/b/index.html)\n";
    assert!(text.ends_with(want), "{text}");
}
