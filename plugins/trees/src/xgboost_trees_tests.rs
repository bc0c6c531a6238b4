//! Unit tests of `xgboost_trees.rs`.

use super::*;
use serde_json::{Value, json};
use std::path::Path;

/// A stump on feature 1 of two, with a categorical split below.
fn model() -> Value {
    json!({ "learner": {
        "learner_model_param": { "num_feature": "2", "num_class": "0", "num_target": "1", "base_score": "[5E-1]" },
        "objective": { "name": "reg:squarederror" },
        "gradient_booster": { "name": "gbtree", "model": {
            "gbtree_model_param": { "num_trees": "1", "num_parallel_tree": "1" },
            "tree_info": [0], "iteration_indptr": [0, 1],
            "trees": [{
                "id": 0,
                "tree_param": { "num_nodes": "6", "num_feature": "2", "size_leaf_vector": "1" },
                "left_children": [1, -1, 3, -1, -1, 90], "right_children": [2, -1, 4, -1, -1, 90],
                "parents": [2147483647, 0, 0, 2, 2, 0], "split_indices": [1, 0, 0, 0, 0, 2147483647],
                "split_type": [0, 0, 1, 0, 0, 0], "split_conditions": [0.5, 1.0, 0.0, 2.0, 3.0, 0.0],
                "default_left": [1, 0, 0, 0, 0, 0], "base_weights": [0, 0, 0, 0, 0, 0],
                "categories": [3, 5], "categories_nodes": [2], "categories_segments": [0], "categories_sizes": [2]
            }]
        } }
    } })
}

fn check(model: &Value) -> Result<(), String> {
    check_json_trees(model.to_string().as_bytes())
}

#[test]
fn models_of_the_suite_pass() {
    assert_eq!(check(&model()), Ok(()));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models/trees");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let version = entry.path().join("1");
        for (file, check) in [
            ("model.json", check_json_trees as fn(&[u8]) -> Result<(), String>),
            ("model.ubj", check_ubjson_trees),
        ] {
            if let Ok(bytes) = std::fs::read(version.join(file)) {
                assert_eq!(check(&bytes), Ok(()), "{}", version.display());
                count += 1;
            }
        }
    }
    assert_eq!(count, 6);
}

#[test]
fn numbers_that_json_lacks_are_read() {
    let text = model().to_string().replace("[0.5,1.0,", "[-Infinity,NaN,");
    assert!(text.contains("NaN"));
    assert_eq!(check_json_trees(text.as_bytes()), Ok(()));
    let name = text.replace("reg:squarederror", "a \\\"NaN");
    assert_eq!(check_json_trees(name.as_bytes()), Ok(()));
    assert_eq!(without_infinities(br#"{"NaN":NaN}"#), br#"{"NaN":0  }"#);
}

#[test]
fn damage_is_named() {
    const TREE: &str = "/learner/gradient_booster/model/trees/0";
    const FOREST: &str = "/learner/gradient_booster/model";
    const PARAMETERS: &str = "/learner/learner_model_param";
    for (place, key, value, expected) in [
        (TREE, "split_indices", json!([2, 0, 0, 0, 0, 0]), "tree 0: node 0 splits feature 2 of 2"),
        (TREE, "split_indices", json!([-1, 0, 0, 0, 0, 0]), "node 0 splits feature -1 of 2"),
        (TREE, "left_children", json!([6, -1, 3, -1, -1, 0]), "node 0 leads to node 6 of 6"),
        (TREE, "left_children", json!([-1, -1, 3, -1, -1, 0]), "node 0 leads to node -1 of 6"),
        (TREE, "left_children", json!([0, -1, 3, -1, -1, 0]), "node 0 leads to node 0 of 6"),
        (TREE, "left_children", json!([2, -1, 3, -1, -1, 0]), "two ways lead to node 2"),
        (TREE, "left_children", json!([1, -1]), "2 values of 'left_children', expected 6"),
        (
            TREE,
            "parents",
            json!([2147483647, 0, 1, 2, 2, 0]),
            "node 2 has the parent 1, expected 0",
        ),
        (TREE, "parents", json!([2147483647, 0, 0, 2, 2, 6]), "a node has the parent 6 of 6"),
        (
            TREE,
            "left_children",
            json!([1, -1, 1, -1, -1, 0]),
            "node 1 has the parent 0, expected 2",
        ),
        (TREE, "parents", json!([]), "0 values of 'parents', expected 6"),
        (TREE, "base_weights", json!([1]), "1 values of 'base_weights', expected 6"),
        (TREE, "split_type", json!([0, 0, 2, 0, 0, 0]), "node 2 has categories and is not"),
        (TREE, "split_type", json!([1, 0, 1, 0, 0, 0]), "node 0 is a categorical split without"),
        (TREE, "split_type", json!([7, 0, 1, 0, 0, 0]), "node 0 has a split of type 7"),
        (TREE, "categories_nodes", json!([6]), "'categories_nodes' are not nodes"),
        (TREE, "categories_nodes", json!([]), "0 nodes, 1 beginnings and 1 sizes"),
        (TREE, "categories_sizes", json!([3]), "a set of categories is 3 from 0 of 2"),
        (TREE, "categories_segments", json!([-1]), "a set of categories is 2 from -1 of 2"),
        (TREE, "categories", json!([3, 16_777_216]), "category 16777216"),
        (TREE, "id", json!(1), "tree 0 has the id 1 of 1"),
        (TREE, "id", json!(-1), "tree 0 has the id -1 of 1"),
        (TREE, "tree_param", json!({ "num_nodes": "0" }), "it has no nodes"),
        (TREE, "tree_param", json!({ "num_nodes": "x" }), "'num_nodes' is 'x'"),
        (
            TREE,
            "tree_param",
            json!({ "num_nodes": "6", "num_feature": "3" }),
            "of 3 features, the model of 2",
        ),
        (
            TREE,
            "tree_param",
            json!({ "num_nodes": "6", "size_leaf_vector": "3" }),
            "its leaves have 3 values, expected 1 or 1",
        ),
        (FOREST, "tree_info", json!([1]), "a tree is of group 1 of 1"),
        (FOREST, "tree_info", json!([]), "'tree_info' has 0 values for 1 trees"),
        (FOREST, "iteration_indptr", json!([0, 2]), "'iteration_indptr' does not divide 1 trees"),
        (
            FOREST,
            "gbtree_model_param",
            json!({ "num_trees": "2" }),
            "it announces 2 trees and has 1",
        ),
        (FOREST, "trees", json!(null), "booster 'gbtree' has no trees"),
        ("/learner/gradient_booster", "name", json!("dart"), "0 weights for 1 trees"),
        (PARAMETERS, "num_feature", json!("1"), "of 2 features, the model of 1"),
        (PARAMETERS, "num_feature", json!("99999999999"), "'num_feature' is '99999999999'"),
        (PARAMETERS, "base_score", json!("[1,2]"), "'base_score' has 2 numbers, expected 1 or 1"),
        (
            "/learner",
            "objective",
            json!({ "softmax_multiclass_param": { "num_class": "3" } }),
            "its objective 3",
        ),
        ("", "learner", json!([]), "invalid"),
    ] {
        let mut changed = model();
        changed.pointer_mut(place).unwrap()[key] = value;
        let text = check(&changed).unwrap_err();
        assert!(text.contains(expected) && text.contains("damaged"), "{key}: {text}");
    }
}

#[test]
fn deep_trees_are_refused() {
    let mut changed = model();
    let nodes = 2 * MAX_LEVELS + 1;
    let child = |at: usize, which: usize| match at.is_multiple_of(2) && at + 2 < nodes {
        true => json!(at + which),
        false => json!(-1),
    };
    let list = |which| (0..nodes).map(|at| child(at, which)).collect::<Vec<_>>();
    let parent = |at: usize| if at == 0 { json!(i32::MAX) } else { json!((at - 1) / 2 * 2) };
    let parents: Vec<Value> = (0..nodes).map(parent).collect();
    let zeros = vec![json!(0); nodes];
    let tree = &mut changed["learner"]["gradient_booster"]["model"]["trees"][0];
    *tree = json!({
        "tree_param": { "num_nodes": nodes.to_string() }, "left_children": list(1), "right_children": list(2),
        "parents": parents, "split_indices": zeros, "split_conditions": zeros, "default_left": zeros,
        "base_weights": zeros
    });
    let text = check(&changed).unwrap_err();
    assert!(text.contains("more than 4096 levels"), "{text}");
}
