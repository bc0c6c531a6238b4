//! Unit tests of `repository_changes.rs`.

use super::*;

#[test]
fn changes_are_numbered_cut_and_forgotten() {
    let changes = RepositoryChanges::default();
    assert_eq!(changes.after(0), (vec![], 0));
    changes.add("m", Some(3), ChangeKind::Loading, "");
    changes.add("m", None, ChangeKind::Failed, &"ü".repeat(MAX_TEXT));
    let (found, last) = changes.after(0);
    let facts: Vec<_> = found.iter().map(|c| (c.number, c.version, c.kind, c.text.len())).collect();
    let failed = (2, None, ChangeKind::Failed, MAX_TEXT);
    assert_eq!((facts, last), (vec![(1, Some(3), ChangeKind::Loading, 0), failed], 2));
    assert_eq!(changes.after(1).0.len(), 1);
    assert!(changes.after(2).0.is_empty());
    for _ in 0..MAX_CHANGES {
        changes.add("n", Some(1), ChangeKind::Loaded, "in 1.0 ms");
    }
    let (found, last) = changes.after(0);
    assert_eq!((found.len(), found[0].number), (MAX_CHANGES, 3));
    assert_eq!(last, MAX_CHANGES as u64 + 2);
}
