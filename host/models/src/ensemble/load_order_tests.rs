//! Unit tests of `load_order.rs`.

use super::*;

/// `a: b c` on each line, or between bars.
fn order_of(text: &str) -> LoadOrder {
    let line = |line: &str| {
        let (name, models) = line.split_once(':').unwrap();
        let models = models.split_whitespace().map(str::to_owned).collect();
        (name.trim().to_owned(), models)
    };
    let steps: EnsembleSteps = text.split('|').map(line).collect();
    load_order(&steps, |name| name.starts_with('m') || steps.contains_key(name))
}

#[test]
fn steps_come_before_their_ensemble() {
    assert_eq!(order_of("a: m b | b: c m | c: m | d: m").names, ["c", "d", "b", "a"]);
    assert_eq!(order_of("a: m").refused, BTreeMap::new());
}

#[test]
fn cycle_is_refused() {
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
        let got = order_of(text);
        assert_eq!(got.names, names, "{text}");
        let refused: Vec<_> = refused.iter().map(|(n, w)| (*n, format!("{start} {w}"))).collect();
        let got: Vec<_> = got.refused.iter().map(|(n, w)| (n.as_str(), w.clone())).collect();
        assert_eq!(got, refused, "{text}");
    }
}

#[test]
fn nesting_deeper_than_the_limit_is_refused() {
    let nested = |deep: usize| {
        let lines = (1..deep).map(|i| format!("e{i:02}: e{:02}", i - 1));
        std::iter::once("e00: m".to_owned()).chain(lines).collect::<Vec<_>>().join(" | ")
    };
    let got = order_of(&nested(MAX_DEPTH));
    assert_eq!((got.names.len(), got.refused.len()), (MAX_DEPTH, 0));
    let got = order_of(&nested(MAX_DEPTH + 2));
    assert_eq!(got.names.len(), MAX_DEPTH);
    assert_eq!(got.refused.keys().collect::<Vec<_>>(), ["e16", "e17"]);
    assert!(got.refused["e16"].ends_with("more than 16 deep"), "{}", got.refused["e16"]);
}

#[test]
fn ensemble_with_unknown_model_is_refused() {
    let got = order_of("a: x m y x | b: a");
    assert_eq!(
        got.refused["a"],
        "ensemble a contains models that are not available or ambiguous: x, y"
    );
    assert_eq!(got.names, ["b"]);
}
