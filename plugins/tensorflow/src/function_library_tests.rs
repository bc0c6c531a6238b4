//! Unit tests of `function_library.rs`.

use super::*;
use crate::tensorflow_files::{Node, call, entry, field, library, node};

fn refusal(parts: &[Vec<u8>]) -> String {
    check_functions(&parts.concat()).unwrap_err().to_string()
}

#[test]
fn functions_without_cycle_are_accepted() {
    assert_eq!(check_functions(&[]), Ok(()));
    let diamond = library(&[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d", "b"]), ("d", &[])]);
    assert_eq!(
        check_functions(&[call(1, "x", "a"), diamond, call(1, "y", "elsewhere")].concat()),
        Ok(())
    );
}

#[test]
fn cycle_is_named() {
    let cycle = library(&[("a", &["b"]), ("b", &["c", "b2"]), ("c", &["b"]), ("b2", &[])]);
    let text = refusal(&[call(1, "x", "a"), cycle.clone()]);
    assert_eq!(text, "cyclic function library: b -> c -> b");
    // A function is called by the type of an operation, too.
    let text = refusal(&[cycle.clone(), node("x", "c", &[])]);
    assert_eq!(text, "cyclic function library: c -> b -> c");
    // Functions that the graph does not call are not expanded.
    assert_eq!(check_functions(&[cycle, node("x", "NoOp", &[])].concat()), Ok(()));
    let own = library(&[("f", &["f"])]);
    assert_eq!(refusal(&[own, call(1, "x", "f")]), "cyclic function library: f -> f");
}

#[test]
fn functions_in_lists_and_nested_attributes_count() {
    let own = library(&[("f", &["f"])]);
    let named = field(10, field(1, "f"));
    let list = field(1, field(9, field(1, "f")));
    let nested = field(10, [field(1, "g"), entry(2, "h", named.clone())].concat());
    for value in [named, list, nested] {
        let attributes = entry(5, "branches", value);
        let case = Node { name: "x", kind: "Case", inputs: &[], attributes }.encode(1);
        assert_eq!(refusal(&[own.clone(), case]), "cyclic function library: f -> f");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let names: Vec<String> = (0..200).map(|n| format!("f{n}")).collect();
    let chain = |n: usize| {
        let function =
            |at: usize| -> Vec<&str> { if at + 1 < n { vec![&names[at + 1]] } else { vec![] } };
        let calls: Vec<Vec<&str>> = (0..n).map(function).collect();
        let functions: Vec<(&str, &[&str])> =
            calls.iter().enumerate().map(|(at, calls)| (&*names[at], &calls[..])).collect();
        library(&functions)
    };
    let root = call(1, "x", "f0");
    assert_eq!(check_functions(&[root.clone(), chain(MAX_DEPTH)].concat()), Ok(()));
    let text = refusal(&[root.clone(), chain(MAX_DEPTH + 1)]);
    assert_eq!(text, "function 'f100' is called through more than 100 others");
    // The end of the chain is visited first.
    let text = refusal(&[call(1, "w", "f60"), root, chain(130)]);
    assert!(text.contains("is called through more than 100 others"), "{text}");

    let mut value = field(10, field(1, "f"));
    for _ in 0..200 {
        value = field(10, entry(2, "g", value));
    }
    let node = Node { name: "x", kind: "Case", inputs: &[], attributes: entry(5, "f", value) };
    let text = refusal(&[node.encode(1)]);
    assert_eq!(text, "not a GraphDef: messages nested too deeply");
}

#[test]
fn malformed_libraries_are_refused() {
    assert_eq!(refusal(&[vec![0x0a, 9]]), "not a GraphDef: truncated message");
    let nameless = field(2, field(1, field(1, [])));
    assert_eq!(refusal(&[nameless]), "not a GraphDef: a function without a name");
}
