//! In which order ensembles are loaded, and which cannot be, whatever becomes of the others. Pure.

use super::not_available;
use std::collections::{BTreeMap, BTreeSet};

/// Ensembles by name, and the models of their steps.
pub type Uses = BTreeMap<String, Vec<String>>;

/// How deep ensembles may be nested. The answer of the innermost step goes through all that it is inside of, and
/// the next request back again, on the stack of whoever answers, which a backend may have made small.
const MOST_DEEP: usize = 16;

/// What [`order`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Those to load: each after the ensembles that it uses.
    pub names: Vec<String>,
    /// The others, and why.
    pub refused: BTreeMap<String, String>,
}

/// `known` tells whether a name stands for exactly one model.
pub fn order(uses: &Uses, known: impl Fn(&str) -> bool) -> Order {
    let mut found = Order::default();
    for (name, models) in uses {
        let missing: BTreeSet<&str> =
            models.iter().map(String::as_str).filter(|m| !known(m)).collect();
        let missing: Vec<&str> = missing.into_iter().collect();
        if !missing.is_empty() {
            found.refused.insert(name.clone(), not_available(name, &missing));
        } else if let Some(last) = models.iter().find(|model| reaches(uses, model, name)) {
            let why =
                format!("circular dependency between ensembles: {name} -> ... -> {last} -> {name}");
            found.refused.insert(name.clone(), why);
        }
    }
    let mut waiting: Vec<&String> =
        uses.keys().filter(|name| !found.refused.contains_key(*name)).collect();
    let mut deep = 0;
    while !waiting.is_empty() {
        if deep == MOST_DEEP {
            let why = |name| {
                format!(
                    "ensemble {name} is made of ensembles that are made of ensembles and so on: more than \
                     {MOST_DEEP} deep"
                )
            };
            found.refused.extend(waiting.iter().map(|name| ((*name).clone(), why(name))));
            break;
        }
        deep += 1;
        let blocking: BTreeSet<&String> = waiting.iter().copied().collect();
        let (later, now): (Vec<&String>, Vec<&String>) =
            waiting.iter().partition(|name| uses[**name].iter().any(|m| blocking.contains(m)));
        // Without cycles something is always next; should that be wrong, the rest fails when it is loaded.
        let (later, now) = if now.is_empty() { (now, later) } else { (later, now) };
        found.names.extend(now.into_iter().cloned());
        waiting = later;
    }
    found
}

/// Whether `from` is `to`, or uses it, directly or through others.
fn reaches(uses: &Uses, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            open.extend(uses.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
