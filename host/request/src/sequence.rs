//! The sequence of a request.

use std::fmt;

/// Identifies the sequence of a request. `0` and `""` mean none; 1 and "1" are different sequences.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum CorrelationId {
    #[default]
    None,
    Number(u64),
    Text(String),
}

impl CorrelationId {
    /// The request is of a sequence.
    pub fn is_some(&self) -> bool {
        !matches!(self, Self::None | Self::Number(0)) && *self != Self::Text(String::new())
    }
}

/// Writes the id as error messages show it.
impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CorrelationId::None => f.write_str("0"),
            CorrelationId::Number(n) => n.fmt(f),
            CorrelationId::Text(text) => f.write_str(text),
        }
    }
}

/// Sequence fields of a request; models without sequence batching ignore them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RequestSequence {
    pub id: CorrelationId,
    pub start: bool,
    pub end: bool,
}
