//! What identifies a model: its name, or with `--model-namespacing` its repository and its name.

/// The id of model `name` in the repository `namespace`.
pub fn join_model_id(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Namespace, empty without `--model-namespacing`, and name.
pub fn split_model_id(id: &str) -> (&str, &str) {
    // Names have no slashes.
    id.rsplit_once('/').unwrap_or(("", id))
}

/// The id of the model that a step of the ensemble `ensemble` names. Precedence, highest first: the
/// namespace that the step names, the namespace of the ensemble, the only model of that name, the
/// name itself. `exists` is asked about ids; `named` returns the ids of the models with a name.
pub fn resolve_step_id(
    ensemble: &str,
    step: &str,
    exists: impl Fn(&str) -> bool,
    named: impl Fn(&str) -> Vec<String>,
) -> String {
    let (namespace, _) = split_model_id(ensemble);
    if namespace.is_empty() || !split_model_id(step).0.is_empty() {
        return step.to_owned();
    }
    let own = join_model_id(namespace, step);
    if exists(&own) {
        return own;
    }
    match <[String; 1]>::try_from(named(step)) {
        Ok([only]) => only,
        Err(_) => step.to_owned(),
    }
}

#[cfg(test)]
#[path = "model_id_tests.rs"]
mod tests;
