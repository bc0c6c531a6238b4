//! Field names of older releases that existing configuration files still use.

use crate::schema::FieldKind;

/// The current meaning of an old name.
pub(super) enum OldNameMeaning {
    Field(&'static str),
    /// The value is checked and discarded.
    Dropped(FieldKind),
    /// The value is checked, and the field gets this number instead.
    Set {
        checked: FieldKind,
        field: &'static str,
        value: u64,
    },
}

pub(super) struct OldName {
    message: &'static str,
    old: &'static str,
    pub now: OldNameMeaning,
    /// Values that were renamed together with the field.
    pub values: &'static [(&'static str, &'static str)],
}

const fn row(message: &'static str, old: &'static str, now: OldNameMeaning) -> OldName {
    OldName { message, old, now, values: &[] }
}

static OLD_NAMES: &[OldName] = &[
    row("ModelConfig", "tags", OldNameMeaning::Field("metric_tags")),
    row("ModelConfig", "instance", OldNameMeaning::Field("instance_group")),
    row("ModelConfig", "base_path", OldNameMeaning::Dropped(FieldKind::String)),
    OldName {
        message: "ModelConfig",
        old: "model_platform",
        now: OldNameMeaning::Field("platform"),
        values: &[("tensorflow_saved_model", "tensorflow_savedmodel")],
    },
    // 0.12 never used the value, and its sequences had no idle limit, which the field sets since
    // v1.0.
    row(
        "ModelSequenceBatching",
        "max_queue_delay_microseconds",
        OldNameMeaning::Set {
            checked: FieldKind::Int32,
            field: "max_sequence_idle_microseconds",
            value: u64::MAX,
        },
    ),
    row(
        "ModelSequenceBatching",
        "generative_sequence",
        OldNameMeaning::Field("iterative_sequence"),
    ),
];

pub(super) fn find_old_name(message: &str, name: &str) -> Option<&'static OldName> {
    OLD_NAMES.iter().find(|row| row.old == name && row.message == message)
}
