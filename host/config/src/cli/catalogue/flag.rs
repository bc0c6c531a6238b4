//! What the catalogue says of one flag.

/// One flag. Names are without the leading dashes.
#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    /// Value when the flag is not given; empty for none.
    pub default: &'static str,
    pub repeatable: bool,
    pub help: &'static str,
    pub status: Status,
}

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
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
pub enum Status {
    Effective,
    /// Accepted without effect, for this reason. Logged at start.
    NoEffect(&'static str),
    /// Accepted with a warning, unless the value is one of `quiet`.
    Warns {
        quiet: &'static [&'static str],
        reason: &'static str,
    },
    /// Refused, unless the value is one of `off`: ignoring the flag would silently change what the server does.
    Unsupported {
        off: &'static [&'static str],
        feature: &'static str,
    },
}

impl Flag {
    pub(super) const fn also(mut self, aliases: &'static [&'static str]) -> Flag {
        self.aliases = aliases;
        self
    }
    pub(super) const fn repeats(mut self) -> Flag {
        self.repeatable = true;
        self
    }
    pub(super) const fn no_effect(mut self, reason: &'static str) -> Flag {
        self.status = Status::NoEffect(reason);
        self
    }
    pub(super) const fn warns(
        mut self,
        quiet: &'static [&'static str],
        reason: &'static str,
    ) -> Flag {
        self.status = Status::Warns { quiet, reason };
        self
    }
    pub(super) const fn unsupported(
        mut self,
        off: &'static [&'static str],
        feature: &'static str,
    ) -> Flag {
        self.status = Status::Unsupported { off, feature };
        self
    }
}

pub(super) const fn flag(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, aliases: &[], kind, default, repeatable: false, help, status: Status::Effective }
}

pub(super) const PORT: Kind = Kind::Int { min: 0, max: 65535 };
/// -1: not served.
pub(super) const PORT_OR_NONE: Kind = Kind::Int { min: -1, max: 65535 };
pub(super) const POSITIVE: Kind = Kind::Int { min: 1, max: i64::MAX };
pub(super) const ANY_INT: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };
pub(super) const BYTES: Kind = Kind::Int { min: 0, max: i64::MAX };
pub(super) const OWN_THREADS: &str = "the number of threads follows the number of CPU cores";
