//! Unit tests of `order.rs`.

use super::*;

/// `a: b c` on each line, or between bars.
fn of(text: &str) -> Order {
    let line = |line: &str| {
        let (name, models) = line.split_once(':').unwrap();
        let models = models.split_whitespace().map(str::to_owned).collect();
        (name.trim().to_owned(), models)
    };
    let uses: Uses = text.split('|').map(line).collect();
    order(&uses, |name| name.starts_with('m') || uses.contains_key(name))
}

#[test]
fn what_is_used_comes_first() {
    assert_eq!(of("a: m b | b: c m | c: m | d: m").names, ["c", "d", "b", "a"]);
    assert_eq!(of("a: m").refused, BTreeMap::new());
}

#[test]
fn cycles() {
    let start = "circular dependency between ensembles:";
    for (text, names, refused) in [
        ("a: a", &[][..], &[("a", "a -> ... -> a -> a")][..]),
        ("a: m b | b: a", &[], &[("a", "a -> ... -> b -> a"), ("b", "b -> ... -> a -> b")]),
        (
            "a: b | b: c | c: m a | d: a | e: m",
            &["d", "e"],
            &[
                ("a", "a -> ... -> b -> a"),
                ("b", "b -> ... -> c -> b"),
                ("c", "c -> ... -> a -> c"),
            ],
        ),
    ] {
        let got = of(text);
        assert_eq!(got.names, names, "{text}");
        let refused: Vec<_> = refused.iter().map(|(n, w)| (*n, format!("{start} {w}"))).collect();
        let got: Vec<_> = got.refused.iter().map(|(n, w)| (n.as_str(), w.clone())).collect();
        assert_eq!(got, refused, "{text}");
    }
}

#[test]
fn too_deep() {
    let nested = |deep: usize| {
        let lines = (1..deep).map(|i| format!("e{i:02}: e{:02}", i - 1));
        std::iter::once("e00: m".to_owned()).chain(lines).collect::<Vec<_>>().join(" | ")
    };
    let got = of(&nested(MOST_DEEP));
    assert_eq!((got.names.len(), got.refused.len()), (MOST_DEEP, 0));
    let got = of(&nested(MOST_DEEP + 2));
    assert_eq!(got.names.len(), MOST_DEEP);
    assert_eq!(got.refused.keys().collect::<Vec<_>>(), ["e16", "e17"]);
    assert!(got.refused["e16"].ends_with("more than 16 deep"), "{}", got.refused["e16"]);
}

#[test]
fn models_that_are_not_there() {
    let got = of("a: x m y x | b: a");
    assert_eq!(
        got.refused["a"],
        "ensemble a contains models that are not available or ambiguous: x, y"
    );
    assert_eq!(got.names, ["b"]);
}
