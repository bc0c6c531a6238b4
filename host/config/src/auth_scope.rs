//! Scopes of the auth file: which kinds of access to which groups of endpoints, for which models.

use super::ApiGroup;
use std::fmt;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Read,
    Infer,
    /// Changes the server, its models or its memory. Includes reading.
    Control,
}

impl AccessKind {
    pub const ALL: [Self; 3] = [Self::Read, Self::Infer, Self::Control];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Infer => "infer",
            Self::Control => "control",
        }
    }
}

/// The models that a call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessedModels<'a> {
    /// None: any pattern will do.
    None,
    /// One that is not known yet: any pattern will do for now.
    Unknown,
    Named(&'a str),
    /// All models of the server: only the pattern `*` will do.
    All,
}

impl<'a> AccessedModels<'a> {
    /// Requests leave the name out to mean all models.
    pub fn from_name(name: &'a str) -> Self {
        if name.is_empty() { Self::All } else { Self::Named(name) }
    }
}

/// Names of models: `*` stands for any characters, also none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPattern(String);

impl ModelPattern {
    fn is_all(&self) -> bool {
        self.0 == "*"
    }

    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            // The first place is the best: what follows has the most left to match.
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// A scope: `ACCESS[:GROUPS[:MODELS]]`, each a list with commas or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessScope {
    kinds: Vec<AccessKind>,
    groups: Vec<ApiGroup>,
    models: Vec<ModelPattern>,
}

impl AccessScope {
    /// # Errors
    /// What is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let kinds = read_list(parts.next().unwrap_or_default(), &AccessKind::ALL, |name| {
            let known = AccessKind::ALL.into_iter().find(|kind| kind.name() == name);
            known.ok_or_else(|| {
                format!("'{name}' is not a kind of access: expected read, infer, control or *")
            })
        });
        let groups = read_list(parts.next().unwrap_or("*"), &ApiGroup::ALL, |name| {
            ApiGroup::from_name(name).ok_or_else(|| {
                let names = ApiGroup::ALL.map(ApiGroup::name).join(", ");
                format!("'{name}' is not a group of endpoints: expected {names} or *")
            })
        });
        let models = parts.next().unwrap_or("*").split(',').map(|pattern| match pattern {
            "" => Err("a pattern for models is empty: expected names, in which * stands for any characters".to_owned()),
            pattern => Ok(ModelPattern(pattern.to_owned())),
        });
        let named = |e: String| format!("scope '{text}': {e}");
        Ok(Self {
            kinds: kinds.map_err(named)?,
            groups: groups.map_err(named)?,
            models: models.collect::<Result<_, _>>().map_err(named)?,
        })
    }

    pub fn allows(&self, kind: AccessKind, group: ApiGroup, models: AccessedModels<'_>) -> bool {
        let reads = kind == AccessKind::Read && self.kinds.contains(&AccessKind::Control);
        (reads || self.kinds.contains(&kind))
            && self.groups.contains(&group)
            && match models {
                AccessedModels::None | AccessedModels::Unknown => true,
                AccessedModels::Named(name) => self.models.iter().any(|p| p.matches(name)),
                AccessedModels::All => self.models.iter().any(ModelPattern::is_all),
            }
    }
}

/// A list with commas; `*` stands for all.
fn read_list<T: Copy>(
    text: &str,
    all: &[T],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    match text {
        "*" => Ok(all.to_vec()),
        list => list.split(',').map(read).collect(),
    }
}

/// The scope that a call needs, as the auth file writes it.
pub struct NeededScope<'a> {
    pub kind: AccessKind,
    pub group: ApiGroup,
    pub models: AccessedModels<'a>,
}

impl fmt::Display for NeededScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.group.name())?;
        match self.models {
            AccessedModels::None | AccessedModels::Unknown => Ok(()),
            AccessedModels::Named(name) => write!(f, ":{name}"),
            AccessedModels::All => f.write_str(":*"),
        }
    }
}

#[cfg(test)]
#[path = "auth_scope_tests.rs"]
mod tests;
