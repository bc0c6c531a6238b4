//! The text of a LightGBM model, checked before the library reads it: LightGBM follows the numbers
//! of a tree without looking whether what they name exists.

use crate::contents::truncated;
use std::collections::HashMap;
use std::str::FromStr;

/// Lines `key=value` up to an empty line.
type Block<'a> = HashMap<&'a str, &'a str>;

/// # Errors
/// What is missing or wrong, and in which tree.
pub fn check_text(bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| format!("the file is not a text: byte {} is not UTF-8", e.valid_up_to()))?;
    let mut lines = text.lines();
    lines.next(); // "tree"
    let header = read_block(&mut lines);
    let features = check_header(&header)?;
    let announced = header.get("tree_sizes").map(|sizes| sizes.split_whitespace().count());
    let mut trees = 0;
    let mut ended = false;
    while let Some(line) = lines.next() {
        if line.starts_with("Tree=") {
            let tree = read_block(&mut lines);
            check_tree(&tree, features)
                .map_err(|fault| fault.in_tree(trees, bytes, lines.clone().next().is_none()))?;
            trees += 1;
        } else if line == "end of trees" {
            ended = true;
            break;
        }
    }
    if !ended || announced.is_some_and(|announced| trees < announced) {
        return Err(truncated(bytes));
    }
    if let Some(announced) = announced.filter(|announced| *announced != trees) {
        return Err(format!("the file is damaged: it announces {announced} trees and has {trees}"));
    }
    let per_iteration: usize = number(&header, "num_tree_per_iteration").unwrap_or(1);
    if per_iteration == 0 || !trees.is_multiple_of(per_iteration) {
        return Err(format!(
            "the file is damaged: {trees} trees are not iterations of {per_iteration} trees each"
        ));
    }
    Ok(())
}

fn read_block<'a>(lines: &mut std::str::Lines<'a>) -> Block<'a> {
    lines
        .map(str::trim_end)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once('='))
        .collect()
}

/// The number of features.
fn check_header(header: &Block<'_>) -> Result<usize, String> {
    let missing = |key: &str| format!("the file is damaged: its header has no number '{key}'");
    let last: usize =
        number(header, "max_feature_idx").ok_or_else(|| missing("max_feature_idx"))?;
    let classes: usize = number(header, "num_class").ok_or_else(|| missing("num_class"))?;
    let per_iteration: usize = number(header, "num_tree_per_iteration")
        .ok_or_else(|| missing("num_tree_per_iteration"))?;
    if last > 1 << 24 || classes == 0 || classes > 1 << 20 || per_iteration > 1 << 20 {
        return Err("the file is damaged: its header has numbers that no model has".to_owned());
    }
    let objective = header.get("objective").copied().unwrap_or_default();
    let of_objective =
        objective.split_whitespace().find_map(|word| word.strip_prefix("num_class:"));
    if let Some(other) = of_objective.filter(|other| other.parse() != Ok(classes)) {
        return Err(format!(
            "the file is damaged: its header has {classes} classes, its objective {other}"
        ));
    }
    Ok(last + 1)
}

/// What is wrong with a tree.
enum TreeFault {
    /// A list is missing or short: perhaps the file ends there.
    Short(&'static str),
    Wrong(String),
}

impl TreeFault {
    fn in_tree(self, tree: usize, bytes: &[u8], at_end: bool) -> String {
        match self {
            TreeFault::Short(_) if at_end => truncated(bytes),
            TreeFault::Short(key) => {
                format!("the file is damaged: tree {tree} lacks values of '{key}'")
            }
            TreeFault::Wrong(what) => format!("the file is damaged: tree {tree}: {what}"),
        }
    }
}

fn check_tree(tree: &Block<'_>, features: usize) -> Result<(), TreeFault> {
    let leaves: usize = number(tree, "num_leaves").ok_or(TreeFault::Short("num_leaves"))?;
    if leaves == 0 {
        return Err(TreeFault::Wrong("it has no leaves".to_owned()));
    }
    list::<f64>(tree, "leaf_value", leaves)?;
    let splits = leaves - 1;
    check_linear(tree, leaves, features)?;
    if splits == 0 {
        return Ok(());
    }
    let features_of = list::<usize>(tree, "split_feature", splits)?;
    if let Some(feature) = features_of.iter().find(|feature| **feature >= features) {
        return Err(TreeFault::Wrong(format!("it splits feature {feature} of {features}")));
    }
    for side in ["left_child", "right_child"] {
        let children = list::<i64>(tree, side, splits)?;
        for (at, child) in children.iter().enumerate() {
            // A leaf is the complement of its number. Splits come after those that lead to them.
            let exists = match usize::try_from(*child) {
                Ok(split) => split > at && split < splits,
                Err(_) => usize::try_from(!*child).is_ok_and(|leaf| leaf < leaves),
            };
            if !exists {
                return Err(TreeFault::Wrong(format!("its '{side}' leads from {at} to {child}")));
            }
        }
    }
    let thresholds = list::<f64>(tree, "threshold", splits)?;
    let decisions = list::<i64>(tree, "decision_type", splits)?;
    check_categories(tree, &thresholds, &decisions)
}

const CATEGORICAL: i64 = 1;

/// The threshold of a categorical split is the number of a set of categories.
fn check_categories(
    tree: &Block<'_>,
    thresholds: &[f64],
    decisions: &[i64],
) -> Result<(), TreeFault> {
    let sets: usize = number(tree, "num_cat").unwrap_or(0);
    let splits = thresholds.iter().zip(decisions).filter(|(_, kind)| **kind & CATEGORICAL != 0);
    for (set, _) in splits {
        if !(0.0..sets as f64).contains(set) {
            return Err(TreeFault::Wrong(format!("set {set} of {sets} sets of categories")));
        }
    }
    if sets == 0 {
        return Ok(());
    }
    let bounds = list::<usize>(tree, "cat_boundaries", sets.saturating_add(1))?;
    let words = tree.get("cat_threshold").map_or(0, |words| words_of(words).count());
    if !bounds.is_sorted() {
        return Err(TreeFault::Wrong("its sets of categories have no bounds".to_owned()));
    }
    match bounds.last().is_some_and(|last| *last <= words) {
        true => Ok(()),
        false => Err(TreeFault::Short("cat_threshold")),
    }
}

/// Leaves of linear trees have coefficients of features.
fn check_linear(tree: &Block<'_>, leaves: usize, features: usize) -> Result<(), TreeFault> {
    if number::<i64>(tree, "is_linear").unwrap_or(0) == 0 {
        return Ok(());
    }
    list::<f64>(tree, "leaf_const", leaves)?;
    let counts = list::<usize>(tree, "num_features", leaves)?;
    let total = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count));
    let total = total.ok_or(TreeFault::Short("num_features"))?;
    list::<f64>(tree, "leaf_coeff", total)?;
    let used = list::<usize>(tree, "leaf_features", total)?;
    match used.iter().find(|feature| **feature >= features) {
        None => Ok(()),
        Some(feature) => {
            Err(TreeFault::Wrong(format!("a leaf uses feature {feature} of {features}")))
        }
    }
}

fn number<T: FromStr>(block: &Block<'_>, key: &str) -> Option<T> {
    block.get(key)?.trim().parse().ok()
}

/// As LightGBM divides a list: at spaces alone, not at other white space.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

/// Exactly `expected` numbers.
fn list<T: FromStr>(
    block: &Block<'_>,
    key: &'static str,
    expected: usize,
) -> Result<Vec<T>, TreeFault> {
    let text = block.get(key).copied().unwrap_or_default();
    let mut words = words_of(text);
    let all: Vec<T> = words.by_ref().map_while(|word| word.parse().ok()).collect();
    if all.len() < expected {
        return Err(TreeFault::Short(key));
    }
    if all.len() > expected || words.next().is_some() {
        let found = words_of(text).count();
        return Err(TreeFault::Wrong(format!(
            "it has {found} values of '{key}', expected {expected}"
        )));
    }
    Ok(all)
}

#[cfg(test)]
#[path = "lightgbm_text_tests.rs"]
mod tests;
