//! Unit tests of `html_links.rs`.

use super::*;

#[test]
fn files_and_elements_of_links_must_be_there() {
    let html = crate::paths::Paths::find().root;
    let page = PathBuf::from("docs/page.html");
    let other = PathBuf::from("docs/introduction.md");
    let pages = BTreeMap::from([
        (page.clone(), "<h2 id=\"here\">".to_owned()),
        (other, "<a name=\"there\">".to_owned()),
    ]);
    for (target, wrong) in [
        ("introduction.md", false),
        ("introduction.md?x#there", false),
        ("../README.md#any", false),
        ("introduction.md#nowhere", true),
        ("nothing.html", true),
    ] {
        assert_eq!(problem(&html, &pages, &page, target).is_some(), wrong, "{target}");
    }
    assert!(problem(&html, &BTreeMap::new(), &page, "nothing.html#x").is_some());
}

#[test]
fn targets_are_those_of_this_book() {
    let text = "<a href=\"a.html\">x</a> <img alt=\"\" src=\"b.svg\"> <a href=\"https://x\">y</a> <a href=\"#z\">";
    assert_eq!(targets(text), ["a.html", "#z", "b.svg"]);
}
