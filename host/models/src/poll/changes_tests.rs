//! Unit tests of `changes.rs`: looks on a fake clock, and what is begun.

use super::*;

/// After a start that could not list a repository.
#[test]
fn all_loads_are_begun_another_time() {
    let mut changes = RepositoryChanges::new(10);
    changes.start("a", 1);
    changes.start("b", 1);
    assert!(changes.is_settled() && changes.due(100).is_empty());
    changes.retry_all();
    assert!(!changes.is_settled());
    let load = |name: &str| (name.to_owned(), PollAction::Load);
    assert_eq!(changes.due(100), [load("a"), load("b")]);
    changes.ended("a");
    assert!(!changes.is_settled());
    changes.ended("b");
    assert!(changes.is_settled());
}

/// Settle time of 10. Each step is a time, the files of the models then (`a=1 b=2`), changes that
/// ended (`/a`), models to be retried (`!a`), and after `>` what is begun then.
fn run(start: &str, steps: &[&str]) {
    let mut changes = RepositoryChanges::new(10);
    for (name, files) in start.split_whitespace().filter_map(|word| word.split_once('=')) {
        changes.start(name, files.to_owned());
    }
    for step in steps {
        let (now, rest) = step.split_once(':').unwrap();
        let now: u64 = now.trim().parse().unwrap();
        let (found, expected) = rest.split_once('>').unwrap();
        let words: Vec<&str> = found.split_whitespace().collect();
        for word in &words {
            match word.split_at(1) {
                ("/", name) => changes.ended(name),
                ("!", name) => changes.retry(name),
                _ => {}
            }
        }
        let files: BTreeMap<&str, &str> =
            words.iter().filter_map(|word| word.split_once('=')).collect();
        for name in ["a", "b"].into_iter().filter(|name| !files.contains_key(name)) {
            changes.see(name, ModelLook::Absent, now);
        }
        for (name, files) in files {
            changes.see(name, ModelLook::Files(files.to_owned()), now);
        }
        let was_due = changes.next_due().is_some_and(|at| at <= now);
        let begun: Vec<String> = changes
            .due(now)
            .into_iter()
            .map(|(name, action)| match action {
                PollAction::Load => format!("+{name}"),
                PollAction::Remove => format!("-{name}"),
            })
            .collect();
        assert_eq!(begun.join(" "), expected.trim(), "{step}");
        assert_eq!(was_due, !begun.is_empty(), "{step}: next_due");
    }
}

#[test]
fn settled_changes_are_begun_once() {
    // Unchanged models.
    run("a=1 b=1", &["0: a=1 b=1 >", "100: a=1 b=1 >"]);
    // Added, changed, removed, added with the same files.
    run(
        "a=1",
        &[
            "5: a=1 b=1 >",
            "14: a=1 b=1 >",
            "15: a=1 b=1 > +b",
            "30: a=1 b=1 >",
            "40: a=2 b=1 /b >",
            "50: a=2 b=1 > +a",
            "60: b=1 /a >",
            "69: b=1 >",
            "70: b=1 > -a",
            "80: a=2 b=1 /a >",
            "90: a=2 b=1 > +a",
        ],
    );
    // An older file is a change, too.
    run("a=2", &["0: a=1 >", "10: a=1 > +a", "20: a=1 /a >"]);
}

#[test]
fn changing_files_are_waited_for() {
    run("", &["0: a=1 >", "9: a=2 >", "18: a=3 >", "27: a=3 >", "28: a=3 > +a"]);
    // Changed and changed back: nothing to do. Removed and put back meanwhile: the same.
    run("a=1", &["0: a=2 >", "5: a=1 >", "50: a=1 >"]);
    run("a=1", &["0: >", "5: a=1 >", "50: a=1 >"]);
    // One model that changes all the time does not delay another.
    run("", &["0: a=1 b=1 >", "5: a=2 b=1 >", "10: a=3 b=1 > +b", "15: a=4 b=1 >"]);
}

#[test]
fn one_change_of_a_model_runs_at_a_time() {
    run(
        "a=1",
        &[
            "0: a=2 >",
            "10: a=2 > +a",
            "20: a=3 >",
            "40: a=3 >",
            "41: a=3 /a > +a",
            "50: >",
            "70: >",
            "71: /a > -a",
            "72: /a >",
        ],
    );
    // A model that was added and removed before it was loaded.
    run("", &["0: a=1 >", "5: >", "50: >"]);
}

#[test]
fn failed_load_is_begun_again_only_after_a_change() {
    run(
        "a=1",
        &["0: a=2 >", "10: a=2 > +a", "20: a=2 /a >", "90: a=2 >", "95: a=3 >", "105: a=3 > +a"],
    );
    run("a=1", &["0: a=2 >", "10: a=2 > +a", "20: a=2 /a >", "30: a=2 !a > +a"]);
}
