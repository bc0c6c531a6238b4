//! What the catalogue says of one flag.

/// One flag. Names are without the leading dashes.
#[derive(Debug)]
pub struct FlagSpec {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: FlagKind,
    /// Value when the flag is not given; empty for none.
    pub default: &'static str,
    pub repeatable: bool,
    pub help: &'static str,
    pub status: FlagStatus,
}

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlagKind {
    /// true or false; the flag without a value means true.
    Bool,
    /// An integer within bounds.
    Int {
        min: i64,
        max: i64,
    },
    /// An integer; a negative one counts as 0.
    Count,
    /// A count, or true for 1 and false for 0.
    Verbosity,
    Float,
    /// A number of bytes, at least 1, with an optional suffix: K, M, G or T for powers of 1024.
    Size,
    /// Free text, with its placeholder in the help text.
    Text(&'static str),
    Path(&'static str),
    Choice(&'static [&'static str]),
}

/// What giving the flag does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlagStatus {
    Effective,
    /// Accepted without effect, for this reason. Logged at start.
    NoEffect(&'static str),
    /// Accepted with a warning, unless the value is one of `quiet`.
    Warns {
        quiet: &'static [&'static str],
        reason: &'static str,
    },
    /// Refused, unless the value is one of `off`: ignoring the flag would silently change what the
    /// server does.
    Unsupported {
        off: &'static [&'static str],
        feature: &'static str,
    },
}

impl FlagSpec {
    pub(super) const fn also(mut self, aliases: &'static [&'static str]) -> FlagSpec {
        self.aliases = aliases;
        self
    }
    pub(super) const fn repeats(mut self) -> FlagSpec {
        self.repeatable = true;
        self
    }
    pub(super) const fn no_effect(mut self, reason: &'static str) -> FlagSpec {
        self.status = FlagStatus::NoEffect(reason);
        self
    }
    pub(super) const fn warns(
        mut self,
        quiet: &'static [&'static str],
        reason: &'static str,
    ) -> FlagSpec {
        self.status = FlagStatus::Warns { quiet, reason };
        self
    }
    pub(super) const fn unsupported(
        mut self,
        off: &'static [&'static str],
        feature: &'static str,
    ) -> FlagSpec {
        self.status = FlagStatus::Unsupported { off, feature };
        self
    }
}

pub(super) const fn flag_spec(
    name: &'static str,
    kind: FlagKind,
    default: &'static str,
    help: &'static str,
) -> FlagSpec {
    FlagSpec {
        name,
        aliases: &[],
        kind,
        default,
        repeatable: false,
        help,
        status: FlagStatus::Effective,
    }
}

pub(super) const PORT: FlagKind = FlagKind::Int { min: 0, max: 65535 };
/// -1: not served.
pub(super) const PORT_OR_NONE: FlagKind = FlagKind::Int { min: -1, max: 65535 };
pub(super) const POSITIVE: FlagKind = FlagKind::Int { min: 1, max: i64::MAX };
pub(super) const ANY_INT: FlagKind = FlagKind::Int { min: i64::MIN, max: i64::MAX };
pub(super) const BYTES: FlagKind = FlagKind::Int { min: 0, max: i64::MAX };
pub(super) const OWN_THREADS: &str = "the number of threads follows the number of CPU cores";
