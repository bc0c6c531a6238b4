//! `--http-restricted-api` and `--grpc-restricted-protocol`: groups of endpoints that require a
//! header with a secret value.

use std::fmt;

/// The groups of endpoints, in the order of the flags' documentation. The last one is not Triton's:
/// only `--auth-file` knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiGroup {
    Health,
    Metadata,
    Inference,
    SharedMemory,
    ModelConfig,
    ModelRepository,
    Statistics,
    Trace,
    Logging,
    Metrics,
}

impl ApiGroup {
    pub const ALL: [Self; GROUPS.len() + 1] = [
        Self::Health,
        Self::Metadata,
        Self::Inference,
        Self::SharedMemory,
        Self::ModelConfig,
        Self::ModelRepository,
        Self::Statistics,
        Self::Trace,
        Self::Logging,
        Self::Metrics,
    ];

    /// As flags and the auth file write it.
    pub fn name(self) -> &'static str {
        let known = GROUPS.iter().find(|(_, group)| *group == self);
        known.map_or("metrics", |(name, _)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}

/// Those that can be restricted by a header.
const GROUPS: [(&str, ApiGroup); 9] = [
    ("health", ApiGroup::Health),
    ("metadata", ApiGroup::Metadata),
    ("inference", ApiGroup::Inference),
    ("shared-memory", ApiGroup::SharedMemory),
    ("model-config", ApiGroup::ModelConfig),
    ("model-repository", ApiGroup::ModelRepository),
    ("statistics", ApiGroup::Statistics),
    ("trace", ApiGroup::Trace),
    ("logging", ApiGroup::Logging),
];

/// The header that requests for a group must have.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderRestriction {
    /// As in the flag, with its prefix.
    pub header: String,
    value: String,
}

impl HeaderRestriction {
    pub fn value(&self) -> &[u8] {
        self.value.as_bytes()
    }
}

/// Without the value, which is a secret.
impl fmt::Debug for HeaderRestriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restriction").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The restriction of each group that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiRestrictions([Option<HeaderRestriction>; GROUPS.len()]);

impl ApiRestrictions {
    /// From the values of the flag `--FLAG`, each `GROUP[,GROUP…]:KEY=VALUE`. `prefix` precedes the
    /// keys in headers, `what` names a group in errors. `None` without values. The texts of the
    /// errors are Triton's.
    pub fn parse(
        flag: &str,
        what: &str,
        prefix: &str,
        values: &[String],
    ) -> Result<Option<Self>, String> {
        let mut restrictions = Self::default();
        for text in values {
            // The value is a secret, which an error must not show.
            let shown = text.split_once('=').map_or(text.as_str(), |(left, _)| left);
            let parts = text.split_once(':').and_then(|(groups, rest)| {
                let (key, value) = rest.split_once('=')?;
                Some((groups, key, value))
            });
            let Some((groups, key, value)) = parts.filter(|(_, key, _)| !key.is_empty()) else {
                return Err(format!(
                    "--{flag}: Invalid format, expected <{what}>[,<{what}>...]:<key>=<value>, found: {shown}"
                ));
            };
            let header = format!("{prefix}{key}");
            if http::HeaderName::from_bytes(header.as_bytes()).is_err() {
                return Err(format!("--{flag}: '{header}' cannot be the name of a header"));
            }
            if value.is_empty() {
                return Err(format!("--{flag}: the value of key '{key}' is empty"));
            }
            for group in groups.split(',') {
                let known = GROUPS.iter().find(|(name, _)| *name == group);
                let Some((_, known)) = known else {
                    return Err(format!("unknown restricted {what} '{group}'"));
                };
                let restriction = &mut restrictions.0[*known as usize];
                if restriction.is_some() {
                    return Err(format!(
                        "restricted {what} '{group}' can not be specified in multiple config groups"
                    ));
                }
                let header = header.clone();
                *restriction = Some(HeaderRestriction { header, value: value.to_owned() });
            }
        }
        Ok((!values.is_empty()).then_some(restrictions))
    }

    pub fn for_group(&self, group: ApiGroup) -> Option<&HeaderRestriction> {
        self.0.get(group as usize)?.as_ref()
    }
}

#[cfg(test)]
#[path = "restrictions_tests.rs"]
mod tests;
