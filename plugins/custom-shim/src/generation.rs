//! Which of the incompatible interfaces behind the same symbol names a library speaks.

use std::fmt;
use trtserver_plugin_api::author::Error;

/// Model parameter that selects the generation.
pub const PARAMETER: &str = "custom_api";
/// Setting for libraries that do not export their version.
pub const SETTING: &str = "api";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generation {
    /// v0.10: the configuration without its length, payloads without shapes.
    V0_10,
    /// v0.11: as v0.12, without size hints.
    V0_11,
    /// v0.12: the header of its manual.
    V0_12,
    /// v1.0 and later, version 1: initialised by a structure.
    V1_0,
    /// v1.6 and later, version 2: callbacks report the memory type.
    V1_6,
}

impl Generation {
    /// Outputs that were not requested are an error (v0.x), instead of being skipped (v1.x).
    pub fn strict(self) -> bool {
        matches!(self, Generation::V0_10 | Generation::V0_11 | Generation::V0_12)
    }

    /// The size that a library passes for an input is a hint. Up to v0.11 it is not set.
    pub fn has_hints(self) -> bool {
        !matches!(self, Generation::V0_10 | Generation::V0_11)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Generation::V0_10 => "A (v0.10)",
            Generation::V0_11 => "B11 (v0.11)",
            Generation::V0_12 => "B (v0.12)",
            Generation::V1_0 => "C (v1.0 and later)",
            Generation::V1_6 => "C, version 2 (v1.6 and later)",
        })
    }
}

/// The generation that a configuration selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestedGeneration {
    V0_10,
    V0_11,
    V0_12,
    V1_0,
}

impl fmt::Display for RequestedGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestedGeneration::V0_10 => "A",
            RequestedGeneration::V0_11 => "B11",
            RequestedGeneration::V0_12 => "B",
            RequestedGeneration::V1_0 => "C",
        })
    }
}

impl RequestedGeneration {
    /// `source` names the parameter or setting for the error.
    pub fn read(value: &str, source: fmt::Arguments<'_>) -> Result<RequestedGeneration, Error> {
        match value {
            "A" => Ok(RequestedGeneration::V0_10),
            "B11" => Ok(RequestedGeneration::V0_11),
            "B" => Ok(RequestedGeneration::V0_12),
            "C" => Ok(RequestedGeneration::V1_0),
            _ => Err(Error::invalid(format_args!(
                "{source} is '{value}', but a generation of custom.h is 'A' (v0.10), 'B11' (v0.11), 'B' (v0.12) \
                 or 'C' (v1.0 and later)"
            ))),
        }
    }
}

/// The generation of a library. `version` is the result of its `CustomVersion`, if exported;
/// `requested` comes from the model's parameter, `default` from the backend's setting.
pub fn choose_generation(
    requested: Option<RequestedGeneration>,
    default: Option<RequestedGeneration>,
    version: Option<u32>,
) -> Result<Generation, Error> {
    match (version, requested) {
        (None, requested) => Ok(match requested.or(default) {
            Some(RequestedGeneration::V0_10) => Generation::V0_10,
            Some(RequestedGeneration::V0_11) => Generation::V0_11,
            Some(RequestedGeneration::V0_12) | None => Generation::V0_12,
            Some(RequestedGeneration::V1_0) => Generation::V1_0,
        }),
        (Some(1 | 2), Some(requested)) if requested != RequestedGeneration::V1_0 => {
            Err(Error::invalid(format_args!(
                "unable to load custom library: parameter '{PARAMETER}' is '{requested}', but the library \
             exports CustomVersion, which only libraries of generation C do"
            )))
        }
        (Some(1), _) => Ok(Generation::V1_0),
        (Some(2), _) => Ok(Generation::V1_6),
        (Some(other), _) => Err(Error::invalid(format_args!(
            "unable to load custom library: invalid custom version {other} is provided"
        ))),
    }
}

#[cfg(test)]
#[path = "generation_tests.rs"]
mod tests;
