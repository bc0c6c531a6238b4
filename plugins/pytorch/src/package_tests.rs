//! What is in an archive. `tests/wire/frameworks/pytorch.rs` has whole packages.

use super::*;
use serde_json::json;

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn one_model_of_a_package_is_served() {
    let entry = |model: &str| format!("p/data/aotinductor/{model}/x.so");
    for (models, expected) in [
        (vec!["model"], Ok("model")),
        (vec!["own"], Ok("own")),
        (vec!["a", "model"], Ok("model")),
        (vec!["a", "b"], Err("the models 'a', 'b'")),
        (vec![], Err("no entry below data/aotinductor")),
    ] {
        let entries: Vec<String> = models.iter().map(|model| entry(model)).collect();
        match (choose_model(&entries), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(text), Err(part)) => assert!(text.contains(part), "{text}"),
            (found, _) => panic!("{models:?}: {found:?}"),
        }
    }
    assert!(is_in("p/data/aotinductor/model/x.so", "model"));
    assert!(!is_in("p/data/aotinductor/model2/x.so", "model"));
}

#[test]
fn operators_are_named_once() {
    let node = |target: &str| json!({ "name": "buf", "node": { "target": target } });
    let list = json!({ "nodes": [node("b::x"), node("a::y"), node("b::x"), {}] });
    assert_eq!(operator_names(&list).into_iter().collect::<Vec<_>>(), ["a::y", "b::x", "unknown"]);
    assert!(operator_names(&json!({})).is_empty());
}

#[test]
fn weights_are_inside() {
    assert_eq!(expect_weights_inside(&names(&["p/data/aotinductor/model/x.so"])), Ok(()));
    for name in ["p/data/weights/weight_0", "p/data/aotinductor/model/x_weights.blob"] {
        assert!(expect_weights_inside(&names(&[name])).is_err(), "{name}");
    }
}

#[test]
fn instruction_sets_are_read_from_the_compiler_line() {
    let found = |code| compiled_for(code).collect::<Vec<_>>();
    assert_eq!(found("// g++ -D CPU_CAPABILITY_AVX512 -mavx512f"), ["AVX-512"]);
    assert_eq!(found("// g++ -D CPU_CAPABILITY_AVX2 -mavx2"), ["AVX2"]);
    assert!(found("// g++ -O3").is_empty());
    assert_eq!(expect_instructions(&BTreeSet::new()), Ok(()));
}
