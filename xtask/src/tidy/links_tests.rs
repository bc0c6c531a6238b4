//! Unit tests of `links.rs`.

use super::*;
use crate::paths::Paths;

#[test]
fn links_in_code_and_to_other_hosts_do_not_count() {
    let page = "[a](a.md) and [b](b.md#x), `[c](c.md)`, [`d`](d.md)\n```\n[e](e.md)\n```\n\
                [f](https://f.example/x.md) [g](mailto:g@example) ![h](h.svg)\n";
    let targets: Vec<_> = relative_links(page).iter().map(|l| (l.line, l.target)).collect();
    assert_eq!(targets, [(1, "a.md"), (1, "b.md#x"), (1, "d.md"), (5, "h.svg")]);
}

#[test]
fn headings_have_the_names_of_addresses() {
    let page = "# A: title, of `config.pbtxt`\n## Same\n## Same\n#no heading\n```\n# code\n```\n### [Link](x.md) & more_x\n";
    let ids: Vec<_> = heading_ids(page).into_iter().collect();
    assert_eq!(ids, ["a-title-of-configpbtxt", "link--more_x", "same", "same-1"]);
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let root = Paths::find().root;
    for (target, want) in [
        ("../repository.md", ""),
        ("../repository.md#load", ""),
        ("../protocol", ""),
        ("../../Cargo.toml", ""),
        ("../../Cargo.toml#L3", ""),
        ("#here", ""),
        ("../nothing.md", "no file '../nothing.md'"),
        ("../repository.md#nowhere", "names no heading"),
        ("#nowhere", "names no heading"),
        ("../../../etc", "no file"),
    ] {
        let text = format!("# Here\n[x]({target})\n");
        let mut findings = Vec::new();
        check(&root, "docs/compatibility/page.md", &text, &mut findings);
        let found = findings.join("\n");
        let fits = if want.is_empty() { found.is_empty() } else { found.contains(want) };
        assert!(fits, "{target}: {found}");
    }
}

#[test]
fn contents_have_every_page_once() {
    let pages = ["docs/a.md", "docs/deep/b.md", SUMMARY].map(str::to_owned).into();
    let mut findings = Vec::new();
    check_contents(
        "- [A](a.md)\n- [B](deep/b.md)\n- [P](../plugins/README.md)\n",
        &pages,
        &mut findings,
    );
    assert_eq!(findings, Vec::<String>::new());
    check_contents("- [A](a.md)\n- [A](./a.md)\n", &pages, &mut findings);
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].contains("listed twice") && findings[1].contains("docs/deep/b.md"));
}
