//! The result of a scenario.

/// See the module text.
pub enum Verdict {
    /// With a remark, perhaps empty.
    Kept(String),
    Broken(String),
    NotApplicable(String),
}

impl Verdict {
    pub fn kept() -> Self {
        Self::Kept(String::new())
    }

    pub fn of(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Broken, |()| Self::kept())
    }
}
