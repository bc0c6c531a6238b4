//! Names that older releases used in text and that files in the field still carry.
use crate::schema::Kind;

/// What an old name means today.
pub(super) enum Now {
    Field(&'static str),
    /// The value is checked and forgotten: nothing reads it any more.
    Dropped(Kind),
}

pub(super) struct OldName {
    message: &'static str,
    old: &'static str,
    pub now: Now,
    /// Values that changed their spelling along with the name.
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
    row("ModelSequenceBatching", "max_queue_delay_microseconds", Now::Dropped(Kind::UInt64)),
    row("ModelSequenceBatching", "generative_sequence", Now::Field("iterative_sequence")),
];

pub(super) fn find(message: &str, name: &str) -> Option<&'static OldName> {
    OLD_NAMES.iter().find(|row| row.old == name && row.message == message)
}
