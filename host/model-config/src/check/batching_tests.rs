//! Unit tests of `batching.rs`.

use super::super::super::testing::{check_errors, parse};
use super::without_effect;

#[test]
fn settings_without_effect_are_warned_about() {
    let complete = "priority_levels: 2 default_priority_level: 1 max_queue_delay_microseconds: 1";
    for (text, fields) in [
        ("".to_owned(), &[][..]),
        ("dynamic_batching {}".to_owned(), &[]),
        (format!("max_batch_size: 2 dynamic_batching {{ {complete} }}"), &[]),
        (
            "max_batch_size: 2 dynamic_batching { default_priority_level: 1 \
             priority_queue_policy { key: 1 value {} } }"
                .to_owned(),
            &["default_priority_level", "priority_queue_policy"],
        ),
        (
            "dynamic_batching { max_queue_delay_microseconds: 1 }".to_owned(),
            &["max_queue_delay_microseconds"],
        ),
    ] {
        let warnings = without_effect(&parse(&text));
        assert_eq!(warnings.len(), fields.len(), "{text}: {warnings:?}");
        for (warning, field) in warnings.iter().zip(fields) {
            let start = format!("'dynamic_batching.{field}' has no effect: ");
            assert!(warning.message.starts_with(&start), "{}", warning.message);
        }
    }
}

#[test]
fn dynamic_batching_rules() {
    check_errors(
        "name: 'm' backend: 'b' max_batch_size: 8",
        &[
            ("dynamic_batching {}", ""),
            ("dynamic_batching { preferred_batch_size: [ 1, 8 ] }", ""),
            (
                "dynamic_batching { preferred_batch_size: [ 4, 0 ] }",
                "dynamic batching preferred size must be positive for m: it is 0",
            ),
            (
                "dynamic_batching { preferred_batch_size: 9 }",
                "dynamic batching preferred size must be <= max batch size for m: 9 is more than 8",
            ),
            ("dynamic_batching { priority_levels: 2 default_priority_level: 2 }", ""),
            (
                "dynamic_batching { priority_levels: 2 }",
                "default priority level must be in range [1, 2] for m: it is 0",
            ),
            (
                "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
                "default priority level must be in range [1, 2] for m: it is 3",
            ),
            (
                "dynamic_batching { priority_levels: 2 default_priority_level: 1 \
                 priority_queue_policy { key: 3 value {} } }",
                "priority queue policy must have priority level in range [1, 2] for m",
            ),
            (
                "dynamic_batching { priority_levels: 2 default_priority_level: 1 \
                 preserve_ordering: true }",
                "Only one priority level is allowed when 'preserve_ordering' is true for m",
            ),
            (
                "dynamic_batching { preserve_ordering: true \
                 default_queue_policy { timeout_action: DELAY } }",
                "",
            ),
            (
                "dynamic_batching { preserve_ordering: true default_queue_policy { \
                 timeout_action: DELAY default_timeout_microseconds: 1 } }",
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' \
                 is true for m",
            ),
            (
                "dynamic_batching { preserve_ordering: true priority_levels: 1 \
                 default_priority_level: 1 priority_queue_policy { key: 1 value { \
                 timeout_action: DELAY default_timeout_microseconds: 1 } } }",
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' \
                 is true for m",
            ),
        ],
    );
    check_errors(
        "name: 'm' backend: 'b'",
        &[
            ("dynamic_batching {}", ""),
            (
                "dynamic_batching { preferred_batch_size: 1 }",
                "dynamic batching preferred size must be <= max batch size for m: 1 is more than 0",
            ),
        ],
    );
}
