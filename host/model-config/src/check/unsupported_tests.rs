//! Unit tests of `unsupported.rs`.

use super::super::super::ConfigFault;
use super::super::super::testing::parse;
use super::*;

#[test]
fn each_unsupported_field_is_refused_or_warned_about() {
    // Field, whether the model is refused, and a configuration that sets it.
    for (field, refused, text) in [
        (
            "sequence_batching.iterative_sequence",
            true,
            "sequence_batching { iterative_sequence: true }",
        ),
        (
            "sequence_batching.state.use_growable_memory",
            true,
            "sequence_batching { state { use_growable_memory: true } }",
        ),
        ("model_repository_agents", true, "model_repository_agents { agents {} }"),
        ("instance_group.passive", true, "instance_group { passive: true }"),
    ] {
        let start = format!("'{field}' of model 'm' is not supported yet: ");
        let message = match check_unsupported(&parse(&format!("name: 'm' {text}"))) {
            (warnings, errors) if errors.is_empty() => {
                assert!(!refused && warnings.len() == 1, "{text}: {warnings:?}");
                warnings[0].message.clone()
            }
            (_, errors) => {
                assert!(refused && errors[0].fault == ConfigFault::Unsupported, "{text}");
                errors[0].message.clone()
            }
        };
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn disabled_features_are_accepted() {
    let text = "name: 'm' response_cache {} model_transaction_policy {} \
                model_repository_agents {} model_metrics {} optimization {} instance_group {}";
    assert_eq!(check_unsupported(&parse(text)), (vec![], vec![]));
    let decoupled = "name: 'm' model_transaction_policy { decoupled: true }";
    assert_eq!(check_unsupported(&parse(decoupled)), (vec![], vec![]));
}
