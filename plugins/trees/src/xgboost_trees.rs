//! The trees of an XGBoost model, checked before the library reads them: XGBoost follows the numbers
//! of a tree, and the places of trees and groups, without looking whether what they name exists.
//!
//! Only nodes that a row can reach are checked: nodes that pruning has removed stay in the file.

use crate::ubjson;
use serde::Deserialize;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use std::fmt;

/// XGBoost computes with categories as floats, and allows the numbers that a float holds exactly.
const MAX_CATEGORIES: i64 = 1 << 24;
/// Far more than any model has; XGBoost allocates by these numbers.
const MAX_FEATURES: u64 = 1 << 24;
const MAX_GROUPS: u64 = 1 << 20;
/// SHAP values are computed by recursion, a level of the stack for each level of the tree.
const MAX_LEVELS: usize = 4096;

const CATEGORICAL: i64 = 1;
/// What a leaf has in place of children.
const NO_CHILD: i64 = -1;
/// What the root has in place of a parent, and a removed node.
const NO_PARENT: i64 = i32::MAX as i64;

#[derive(Deserialize)]
struct Document {
    learner: Learner,
}

#[derive(Deserialize)]
struct Learner {
    learner_model_param: ModelParameters,
    gradient_booster: Booster,
    objective: Option<Objective>,
}

/// Numbers are texts.
#[derive(Deserialize)]
struct ModelParameters {
    num_feature: String,
    num_class: Option<String>,
    num_target: Option<String>,
    base_score: Option<String>,
}

#[derive(Deserialize)]
struct Objective {
    softmax_multiclass_param: Option<ClassCount>,
}

#[derive(Deserialize)]
struct ClassCount {
    num_class: Option<String>,
}

#[derive(Deserialize)]
struct Booster {
    #[serde(default)]
    name: String,
    model: Option<Forest>,
    /// Of `dart`, the trees and a weight for each.
    gbtree: Option<Box<Booster>>,
    weight_drop: Option<Length>,
}

#[derive(Deserialize)]
struct Forest {
    gbtree_model_param: Option<ForestParameters>,
    /// The group of each tree.
    tree_info: Option<Vec<i64>>,
    iteration_indptr: Option<Vec<i64>>,
    trees: Option<Vec<Tree>>,
}

#[derive(Deserialize)]
struct ForestParameters {
    num_trees: String,
    num_parallel_tree: Option<String>,
}

#[derive(Deserialize)]
struct Tree {
    id: Option<i64>,
    tree_param: TreeParameters,
    left_children: Vec<i64>,
    right_children: Vec<i64>,
    parents: Vec<i64>,
    split_indices: Vec<i64>,
    split_conditions: Length,
    default_left: Length,
    base_weights: Length,
    loss_changes: Option<Length>,
    sum_hessian: Option<Length>,
    #[serde(default)]
    split_type: Vec<i64>,
    #[serde(default)]
    categories: Vec<i64>,
    #[serde(default)]
    categories_nodes: Vec<i64>,
    #[serde(default)]
    categories_segments: Vec<i64>,
    #[serde(default)]
    categories_sizes: Vec<i64>,
}

#[derive(Deserialize)]
struct TreeParameters {
    num_nodes: String,
    num_feature: Option<String>,
    size_leaf_vector: Option<String>,
}

/// How many elements a list has; they are not kept.
struct Length(usize);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Length, A::Error> {
                let mut length = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    length += 1;
                }
                Ok(Length(length))
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

/// # Errors
/// What is missing or wrong, and in which tree.
pub fn check_json_trees(bytes: &[u8]) -> Result<(), String> {
    let document = serde_json::from_slice::<Document>(&without_infinities(bytes));
    check_document(&document.map_err(|e| format!("the file is damaged: {e}"))?)
}

/// # Errors
/// What is missing or wrong, and in which tree.
pub fn check_ubjson_trees(bytes: &[u8]) -> Result<(), String> {
    check_document(&ubjson::read(bytes).map_err(|fault| fault.explain(bytes))?)
}

/// XGBoost writes NaN and Infinity, which JSON does not have: replaced by numbers of the same
/// length, so that places in messages stay right.
fn without_infinities(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let (mut in_string, mut at) = (false, 0);
    while let Some(byte) = out.get(at).copied() {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'N' | b'I' if !in_string => {
                for word in [&b"NaN"[..], b"Infinity"] {
                    if out.get(at..).is_some_and(|rest| rest.starts_with(word)) {
                        out[at..at + word.len()].fill(b' ');
                        out[at] = b'0';
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    out
}

fn damaged(what: impl fmt::Display) -> String {
    format!("the file is damaged: {what}")
}

/// A number up to `most` that is written as a text.
fn number(text: &str, key: &str, most: u64) -> Result<usize, String> {
    let parsed = text.trim().parse::<u64>().ok().filter(|number| *number <= most);
    let number = parsed.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| damaged(format_args!("'{key}' is '{text}', expected 0 to {most}")))
}

fn check_document(document: &Document) -> Result<(), String> {
    let Learner { learner_model_param: parameters, gradient_booster, objective } =
        &document.learner;
    let features = number(&parameters.num_feature, "num_feature", MAX_FEATURES)?;
    let count = |text: &Option<String>, key: &str| match text {
        Some(text) => number(text, key, MAX_GROUPS),
        None => Ok(0),
    };
    let classes = count(&parameters.num_class, "num_class")?;
    let groups = classes.max(count(&parameters.num_target, "num_target")?).max(1);
    let of_objective = objective.as_ref().and_then(|own| own.softmax_multiclass_param.as_ref());
    if let Some(own) = of_objective.and_then(|own| own.num_class.as_ref())
        && number(own, "softmax_multiclass_param.num_class", MAX_GROUPS)? != classes
    {
        return Err(damaged(format_args!("the model has {classes} classes, its objective {own}")));
    }
    let scores = parameters.base_score.as_deref().unwrap_or("0");
    let scores = scores.split(',').count();
    if scores != 1 && scores != groups {
        return Err(damaged(format_args!(
            "'base_score' has {scores} numbers, expected 1 or {groups}"
        )));
    }
    check_booster(gradient_booster, features, groups)
}

fn check_booster(booster: &Booster, features: usize, groups: usize) -> Result<(), String> {
    let own = booster.gbtree.as_deref().unwrap_or(booster);
    let trees = own.model.as_ref().and_then(|forest| forest.trees.as_deref());
    let (Some(forest), Some(trees)) = (&own.model, trees) else {
        // Of no trees, which is refused by its name.
        return match booster.name.as_str() {
            "gblinear" => Ok(()),
            name => Err(damaged(format_args!("booster '{name}' has no trees"))),
        };
    };
    if booster.name == "dart" && booster.weight_drop.as_ref().is_none_or(|w| w.0 != trees.len()) {
        let found = booster.weight_drop.as_ref().map_or(0, |weights| weights.0);
        return Err(damaged(format_args!("{found} weights for {} trees", trees.len())));
    }
    check_forest(forest, trees.len(), groups)?;
    let mut seen = vec![false; trees.len()];
    for (at, tree) in trees.iter().enumerate() {
        // XGBoost puts the tree to this place.
        let place = tree.id.map_or(Ok(at), usize::try_from).unwrap_or(usize::MAX);
        match seen.get_mut(place) {
            Some(seen) if !*seen => *seen = true,
            _ => {
                let id = tree.id.unwrap_or_default();
                return Err(damaged(format_args!("tree {at} has the id {id} of {}", trees.len())));
            }
        }
        check_tree(tree, features, groups)
            .map_err(|what| damaged(format_args!("tree {at}: {what}")))?;
    }
    Ok(())
}

/// Numbers of trees, and the group and iteration of each.
fn check_forest(forest: &Forest, trees: usize, groups: usize) -> Result<(), String> {
    if let Some(parameters) = &forest.gbtree_model_param {
        let announced = number(&parameters.num_trees, "num_trees", u64::from(u32::MAX))?;
        if announced != trees {
            return Err(damaged(format_args!("it announces {announced} trees and has {trees}")));
        }
        let parallel = parameters.num_parallel_tree.as_deref().unwrap_or("1");
        // 0 is what early releases wrote for 1.
        number(parallel, "num_parallel_tree", MAX_GROUPS)?;
    }
    let info = forest.tree_info.as_deref().unwrap_or_default();
    if info.len() != trees {
        return Err(damaged(format_args!(
            "'tree_info' has {} values for {trees} trees",
            info.len()
        )));
    }
    let exists = |group: &i64| usize::try_from(*group).is_ok_and(|group| group < groups);
    if let Some(group) = info.iter().find(|group| !exists(group)) {
        return Err(damaged(format_args!("a tree is of group {group} of {groups}")));
    }
    let Some(bounds) = forest.iteration_indptr.as_deref().filter(|bounds| !bounds.is_empty())
    else {
        return Ok(());
    };
    let last = bounds.last().and_then(|last| usize::try_from(*last).ok());
    match bounds.is_sorted() && bounds.first() == Some(&0) && last == Some(trees) {
        true => Ok(()),
        false => Err(damaged(format_args!(
            "'iteration_indptr' does not divide {trees} trees into iterations"
        ))),
    }
}

fn check_tree(tree: &Tree, features: usize, groups: usize) -> Result<(), String> {
    let parameters = &tree.tree_param;
    let nodes = number(&parameters.num_nodes, "num_nodes", u64::from(u32::MAX))?;
    let width = parameters.size_leaf_vector.as_deref().unwrap_or("1");
    let width = number(width, "size_leaf_vector", MAX_GROUPS)?.max(1);
    if width > 1 && width != groups {
        return Err(format!("its leaves have {width} values, expected 1 or {groups}"));
    }
    let own = parameters.num_feature.as_deref().unwrap_or("0");
    let own = number(own, "num_feature", MAX_FEATURES)?;
    if own > features {
        return Err(format!("it is of {own} features, the model of {features}"));
    }
    if nodes == 0 {
        return Err("it has no nodes".to_owned());
    }
    // Trees with several values in a leaf have lists of other lengths.
    let scalar = |list: &Option<Length>| list.as_ref().filter(|_| width == 1).map(|list| list.0);
    let weights = Some(tree.base_weights.0).filter(|_| width == 1);
    for (key, found) in [
        ("left_children", Some(tree.left_children.len())),
        ("right_children", Some(tree.right_children.len())),
        ("split_indices", Some(tree.split_indices.len())),
        ("split_type", Some(tree.split_type.len()).filter(|length| *length > 0)),
        ("parents", Some(tree.parents.len())),
        ("split_conditions", Some(tree.split_conditions.0)),
        ("default_left", Some(tree.default_left.0)),
        ("base_weights", weights),
        ("loss_changes", scalar(&tree.loss_changes)),
        ("sum_hessian", scalar(&tree.sum_hessian)),
    ] {
        if let Some(found) = found.filter(|found| *found != nodes) {
            return Err(format!("it has {found} values of '{key}', expected {nodes}"));
        }
    }
    let exists = |parent: &i64| usize::try_from(*parent).is_ok_and(|parent| parent < nodes);
    if let Some(parent) = tree.parents.iter().find(|p| **p != NO_PARENT && !exists(p)) {
        return Err(format!("a node has the parent {parent} of {nodes}"));
    }
    check_categories(tree, nodes)?;
    walk_nodes(tree, features)
}

/// Each categorical split has a part of the list of categories.
fn check_categories(tree: &Tree, nodes: usize) -> Result<(), String> {
    let (places, sets) = (&tree.categories_nodes, tree.categories_segments.len());
    if places.len() != sets || tree.categories_sizes.len() != sets {
        return Err(format!(
            "it has {} nodes, {sets} beginnings and {} sizes of sets of categories",
            places.len(),
            tree.categories_sizes.len()
        ));
    }
    let is_node = |node: &i64| usize::try_from(*node).is_ok_and(|node| node < nodes);
    if !places.is_sorted_by(|a, b| a < b) || !places.iter().all(is_node) {
        return Err("its 'categories_nodes' are not nodes in their order".to_owned());
    }
    let kind = |node: &i64| usize::try_from(*node).ok().and_then(|at| tree.split_type.get(at));
    if let Some(node) = places.iter().find(|node| kind(node) != Some(&CATEGORICAL)) {
        return Err(format!("node {node} has categories and is not a categorical split"));
    }
    for (begin, size) in tree.categories_segments.iter().zip(&tree.categories_sizes) {
        let end = begin.checked_add(*size).and_then(|end| usize::try_from(end).ok());
        if *begin < 0 || *size < 0 || end.is_none_or(|end| end > tree.categories.len()) {
            let all = tree.categories.len();
            return Err(format!("a set of categories is {size} from {begin} of {all}"));
        }
    }
    match tree.categories.iter().find(|category| !(0..MAX_CATEGORIES).contains(*category)) {
        Some(category) => Err(format!("category {category}, expected 0 to {MAX_CATEGORIES}")),
        None => Ok(()),
    }
}

/// Follows all ways from the root. All lists have a value for each node.
fn walk_nodes(tree: &Tree, features: usize) -> Result<(), String> {
    let mut seen = vec![false; tree.left_children.len()];
    let mut open = vec![(0, 1, NO_PARENT)];
    while let Some((node, level, above)) = open.pop() {
        if tree.parents[node] != above {
            return Err(format!(
                "node {node} has the parent {}, expected {above}",
                tree.parents[node]
            ));
        }
        if std::mem::replace(&mut seen[node], true) {
            return Err(format!("two ways lead to node {node}"));
        }
        if level > MAX_LEVELS {
            return Err(format!("it has more than {MAX_LEVELS} levels"));
        }
        let children = [tree.left_children[node], tree.right_children[node]];
        if children == [NO_CHILD, NO_CHILD] {
            continue;
        }
        let feature = tree.split_indices[node];
        if usize::try_from(feature).map_or(true, |feature| feature >= features) {
            return Err(format!("node {node} splits feature {feature} of {features}"));
        }
        match tree.split_type.get(node) {
            None | Some(0) => {}
            Some(&CATEGORICAL) => {
                let listed = i64::try_from(node)
                    .is_ok_and(|node| tree.categories_nodes.binary_search(&node).is_ok());
                if !listed {
                    return Err(format!("node {node} is a categorical split without categories"));
                }
            }
            Some(other) => return Err(format!("node {node} has a split of type {other}")),
        }
        for child in children {
            match usize::try_from(child) {
                Ok(next) if next < seen.len() && next != 0 => {
                    open.push((next, level + 1, node as i64));
                }
                _ => return Err(format!("node {node} leads to node {child} of {}", seen.len())),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "xgboost_trees_tests.rs"]
mod tests;
