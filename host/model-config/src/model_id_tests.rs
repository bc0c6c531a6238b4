//! Unit tests of `model_id.rs`.

use super::*;

#[test]
fn steps_are_looked_up_in_their_own_namespace_first() {
    let ids = ["/a/x", "/a/both", "gs://b/c/both", "gs://b/c/y"];
    let exists = |id: &str| ids.contains(&id);
    let named = |name: &str| -> Vec<String> {
        let of_name = ids.iter().filter(|id| split_model_id(id).1 == name);
        of_name.map(|id| (*id).to_owned()).collect()
    };
    for (ensemble, step, id) in [
        ("/a/e", "both", "/a/both"),
        ("gs://b/c/e", "both", "gs://b/c/both"),
        ("/a/e", "y", "gs://b/c/y"),
        ("/a/e", "gs://b/c/both", "gs://b/c/both"),
        ("/d/e", "both", "both"),
        ("/a/e", "none", "none"),
        ("e", "both", "both"),
    ] {
        assert_eq!(resolve_step_id(ensemble, step, exists, named), id, "{ensemble} {step}");
    }
}
