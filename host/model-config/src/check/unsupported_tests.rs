//! Unit tests of `unsupported.rs`.

use super::super::super::ConfigFault;
use super::super::super::testing::parse;
use super::*;

#[test]
fn each_unsupported_field_is_refused() {
    // Field, and a configuration that sets it.
    for (field, text) in [
        ("sequence_batching.iterative_sequence", "sequence_batching { iterative_sequence: true }"),
        (
            "sequence_batching.state.use_growable_memory",
            "sequence_batching { state { use_growable_memory: true } }",
        ),
        ("model_repository_agents", "model_repository_agents { agents {} }"),
        ("instance_group.passive", "instance_group { passive: true }"),
    ] {
        let start = format!("'{field}' of model 'm' is not supported yet: ");
        let errors = check_unsupported(&parse(&format!("name: 'm' {text}")));
        assert!(errors[0].fault == ConfigFault::Unsupported, "{text}");
        assert!(errors[0].message.starts_with(&start), "{}", errors[0].message);
    }
}

#[test]
fn disabled_features_are_accepted() {
    let text = "name: 'm' response_cache {} model_transaction_policy {} \
                model_repository_agents {} model_metrics {} optimization {} instance_group {}";
    assert_eq!(check_unsupported(&parse(text)), vec![]);
    let decoupled = "name: 'm' model_transaction_policy { decoupled: true }";
    assert_eq!(check_unsupported(&parse(decoupled)), vec![]);
}
