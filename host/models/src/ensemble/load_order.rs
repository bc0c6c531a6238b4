//! Load order of ensembles, and which cannot be loaded. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Ensembles by name, and the models of their steps.
pub type EnsembleSteps = BTreeMap<String, Vec<String>>;

/// How deep ensembles may be nested. The response of the innermost step passes through all
/// enclosing ensembles, and the next request back, on the stack of the responding thread, which a
/// backend may have created with a small one.
const MAX_DEPTH: usize = 16;

/// Result of [`load_order`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LoadOrder {
    /// Ensembles to load: each after the ensembles among its steps.
    pub names: Vec<String>,
    /// The others, and why.
    pub refused: BTreeMap<String, String>,
}

/// Orders `ensembles`. `unique` says whether a name stands for exactly one model.
pub fn load_order(ensembles: &EnsembleSteps, unique: impl Fn(&str) -> bool) -> LoadOrder {
    let mut order = LoadOrder::default();
    for (name, models) in ensembles {
        let missing: BTreeSet<&str> =
            models.iter().map(String::as_str).filter(|m| !unique(m)).collect();
        let missing: Vec<&str> = missing.into_iter().collect();
        if !missing.is_empty() {
            order.refused.insert(name.clone(), not_available(name, &missing));
        } else if let Some(last) = models.iter().find(|model| reaches_step(ensembles, model, name))
        {
            let reason =
                format!("circular dependency between ensembles: {name} -> ... -> {last} -> {name}");
            order.refused.insert(name.clone(), reason);
        }
    }
    let mut pending: Vec<&String> =
        ensembles.keys().filter(|name| !order.refused.contains_key(*name)).collect();
    let mut depth = 0;
    while !pending.is_empty() {
        if depth == MAX_DEPTH {
            let reason =
                |name| format!("ensemble {name} nests ensembles more than {MAX_DEPTH} deep");
            order.refused.extend(pending.iter().map(|name| ((*name).clone(), reason(name))));
            break;
        }
        depth += 1;
        let unordered: BTreeSet<&String> = pending.iter().copied().collect();
        let (later, next): (Vec<&String>, Vec<&String>) = pending
            .iter()
            .partition(|name| ensembles[**name].iter().any(|m| unordered.contains(m)));
        // Without cycles `next` is never empty. If it were, the rest fails when it is loaded.
        let (later, next) = if next.is_empty() { (next, later) } else { (later, next) };
        order.names.extend(next.into_iter().cloned());
        pending = later;
    }
    order
}

/// Whether `from` is `to`, or has it as a step, directly or through other ensembles.
fn reaches_step(ensembles: &EnsembleSteps, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(name) = pending.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            pending.extend(ensembles.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// The error for models that are in no repository, or in several.
pub(super) fn not_available(ensemble: &str, models: &[&str]) -> String {
    let list = models.join(", ");
    format!("ensemble {ensemble} contains models that are not available or ambiguous: {list}")
}

#[cfg(test)]
#[path = "load_order_tests.rs"]
mod tests;
