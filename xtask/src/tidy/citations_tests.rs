//! Unit tests of `citations.rs`.

use super::*;

#[test]
fn citations_must_lead_somewhere() {
    let page = Page::parse(
        "# Title\n## 3. HTTP\n1. no trap\n### 3.6 Infer\n### 3.7 More\n## 14. Traps\n4. four\n| # | Trap |\n| 36 | x |\n",
    );
    let protocol = Protocol(BTreeMap::from([("v1.md".to_owned(), page)]));
    for (text, findings) in [
        ("(docs/protocol/v1.md §3.6)", 0),
        ("docs/protocol/v1.md §3.6, §3.7 and §3.", 0),
        ("docs/protocol/v1.md §3.6–3.7 has 2 rows", 0),
        ("docs/protocol/v1.md §3.6–3.8", 1),
        ("docs/protocol/v1.md trap 36, rows 12 to 15", 0),
        ("docs/protocol/v1.md trap 1", 1),
        ("docs/protocol/v1.md §9, §3.9", 2),
        ("docs/protocol/v9.md §1", 1),
        ("docs/protocol/v1.md, and docs/protocol/v1.md §4.", 1),
        ("docs/protocol/{v1,v2}.md", 0),
    ] {
        let mut found = Vec::new();
        protocol.check("x.rs", text, &mut found);
        assert_eq!(found.len(), findings, "{text}: {found:?}");
    }
}
