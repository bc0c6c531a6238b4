//! Flags as given on the command line or in a `--config` file, not yet interpreted.

use super::catalogue::{self, FlagSpec};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Every flag that was given, by its first name.
#[derive(Debug, Default)]
pub struct GivenFlags(BTreeMap<&'static str, GivenFlag>);

/// One flag as it was given: a single value, or several for a repeatable one.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenFlag {
    pub values: Vec<OsString>,
    pub origin: FlagOrigin,
}

/// Where a flag was given.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagOrigin {
    CommandLine,
    File { path: PathBuf, line: usize },
}

/// Prefix of an error message: nothing, or `FILE:LINE: `.
impl fmt::Display for FlagOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlagOrigin::CommandLine => Ok(()),
            FlagOrigin::File { path, line } => write!(f, "{}:{line}: ", path.display()),
        }
    }
}

impl GivenFlags {
    pub fn get(&self, name: &str) -> Option<&GivenFlag> {
        self.0.get(name)
    }

    pub(super) fn insert(&mut self, flag: &'static FlagSpec, given: GivenFlag) {
        self.0.insert(flag.name, given);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static FlagSpec, &GivenFlag)> {
        catalogue::all_flags().filter_map(|f| self.0.get(f.name).map(|given| (f, given)))
    }

    /// Adds flags of a `--config` file. The command line takes precedence, for repeatable flags
    /// too.
    pub(super) fn add_defaults(&mut self, file: GivenFlags) {
        for (name, given) in file.0 {
            self.0.entry(name).or_insert(given);
        }
    }
}
