//! Field names of older releases that existing configuration files still use.

use crate::schema::Kind;

/// The current meaning of an old name.
pub(super) enum Now {
    Field(&'static str),
    /// The value is checked and discarded.
    Dropped(Kind),
    /// The value is checked, and the field gets this number instead.
    Set {
        checked: Kind,
        field: &'static str,
        value: u64,
    },
}

pub(super) struct OldName {
    message: &'static str,
    old: &'static str,
    pub now: Now,
    /// Values that were renamed together with the field.
    pub values: &'static [(&'static str, &'static str)],
}

const fn row(message: &'static str, old: &'static str, now: Now) -> OldName {
    OldName { message, old, now, values: &[] }
}

static OLD_NAMES: &[OldName] = &[
    row("ModelConfig", "tags", Now::Field("metric_tags")),
    row("ModelConfig", "instance", Now::Field("instance_group")),
    row("ModelConfig", "base_path", Now::Dropped(Kind::String)),
    OldName {
        message: "ModelConfig",
        old: "model_platform",
        now: Now::Field("platform"),
        values: &[("tensorflow_saved_model", "tensorflow_savedmodel")],
    },
    // 0.12 never used the value, and its sequences had no idle limit, which the field sets since v1.0.
    row(
        "ModelSequenceBatching",
        "max_queue_delay_microseconds",
        Now::Set { checked: Kind::Int32, field: "max_sequence_idle_microseconds", value: u64::MAX },
    ),
    row("ModelSequenceBatching", "generative_sequence", Now::Field("iterative_sequence")),
];

pub(super) fn find(message: &str, name: &str) -> Option<&'static OldName> {
    OLD_NAMES.iter().find(|row| row.old == name && row.message == message)
}
