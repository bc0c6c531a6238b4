//! Names of inputs and outputs from torch's trees.

use super::*;

const VALUE: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

fn node(kind: &str, context: &str, children: &[String]) -> String {
    let children = children.join(", ");
    format!(r#"{{"type": "{kind}", "context": {context}, "children_spec": [{children}]}}"#)
}

fn tuple(children: &[String]) -> String {
    node("builtins.tuple", r#""null""#, children)
}

fn dictionary(keys: &str, children: &[String]) -> String {
    node("builtins.dict", keys, children)
}

#[test]
fn inputs_are_named_by_position_and_keyword() {
    let value = VALUE.to_owned();
    let pair = node("builtins.list", r#""null""#, &[value.clone(), value.clone()]);
    let args = tuple(&[value.clone(), pair]);
    let kwargs = dictionary(r#""[\"mask\"]""#, std::slice::from_ref(&value));
    let spec = format!("[1, {}]", tuple(&[args, kwargs]));
    let names = ["ARGS[0]", "ARGS[1][0]", "ARGS[1][1]", "KWARGS[mask]"];
    assert_eq!(input_names(&spec, 4), Some(names.map(str::to_owned).to_vec()));
    // A constant among the arguments: which of them are inputs is unknown.
    assert_eq!(input_names(&spec, 3), None);
}

#[test]
fn outputs_are_named_by_structure() {
    let value = VALUE.to_owned();
    let spec = |tree: &str| format!("[1, {tree}]");
    let two = tuple(&[value.clone(), value.clone()]);
    let table: [(String, &[&str]); 5] = [
        (value.clone(), &["RESULT"]),
        (two.clone(), &["RESULT[0]", "RESULT[1]"]),
        (
            dictionary(r#""[\"h\", \"out\"]""#, &[value.clone(), two]),
            &["RESULT[h]", "RESULT[out][0]", "RESULT[out][1]"],
        ),
        // The context as a list, and keys that are numbers.
        (dictionary("[7]", std::slice::from_ref(&value)), &["RESULT[7]"]),
        (node("Detection", r#"{"a": 1}"#, &[value]), &["RESULT[0]"]),
    ];
    for (tree, names) in table {
        let found = output_names(&spec(&tree), names.len()).expect("names");
        assert_eq!(found, names, "{tree}");
    }
}

#[test]
fn other_texts_have_no_names() {
    for text in ["", "null", "[1]", "{}", "[1, 2, 3]", r#"[1, {"type": "builtins.tuple"}]"#] {
        assert_eq!(output_names(text, 1).filter(|names| names != &["RESULT"]), None, "{text}");
    }
    let mut deep = VALUE.to_owned();
    for _ in 0..100 {
        deep = tuple(&[deep]);
    }
    assert_eq!(output_names(&format!("[1, {deep}]"), 1), None);
}
