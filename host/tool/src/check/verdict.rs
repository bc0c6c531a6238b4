//! The result of a scenario.

/// The result of one scenario, with a text for the report.
pub enum ScenarioVerdict {
    /// With a remark, perhaps empty.
    Kept(String),
    Broken(String),
    /// It may harm others, and breaks no promise.
    Warning(String),
    /// The promise applies and was not checked, for this reason.
    Untested(String),
    /// The backend offers nothing that the promise is about.
    NotApplicable(String),
}

impl ScenarioVerdict {
    pub fn kept() -> Self {
        Self::Kept(String::new())
    }

    pub fn from_result(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Broken, |()| Self::kept())
    }
}
