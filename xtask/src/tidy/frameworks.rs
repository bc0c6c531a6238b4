//! The host names no framework: what it must know of a backend, the backend declares. Comments may
//! name one, as examples.

use std::collections::BTreeSet;

/// Parts of names of frameworks, their platforms and their files.
const NAMES: &[&str] = &[
    "caffe2",
    "graphdef",
    "lightgbm",
    "netdef",
    "onnx",
    "openvino",
    "savedmodel",
    "sklearn",
    "tensorflow",
    "tensorrt",
    "torch",
    "xgboost",
];

/// Names of backends that are ordinary words: only as a whole literal.
const LITERALS: &[&str] = &["\"custom\"", "\"python\""];

/// Files that may name frameworks, most because a protocol page fixes the words.
const ALLOWED: &[(&str, &str)] = &[
    ("host/config/src/backend_config.rs", "flags of TRTIS for one backend"),
    ("host/config/src/build.rs", "environment variables of TRTIS"),
    ("host/config/src/cli/catalogue/backends.rs", "flags of TRTIS for one backend"),
    ("host/config/src/platform_config.rs", "platforms of --platform-config-file"),
    ("host/frontend-v1/src/status_1804.rs", "a platform as 18.04 spelled it"),
    ("host/model-config/src/check/instance_groups.rs", "error texts of v1.6"),
    ("host/model-config/src/check/tensors.rs", "error texts of v1.11 and v2"),
    ("host/model-config/src/check/trtis_rules.rs", "rules of v1.x for its platforms"),
    ("host/model-config/src/platforms.rs", "platforms of releases, in their order of detection"),
    ("host/server/src/start_lines.rs", "the start line of TRTIS"),
    ("host/tool/src/fetch.rs", "the option that names the interpreter of pip"),
];

/// The rule, and the allowed files that were seen to need their exception.
#[derive(Default)]
pub struct Frameworks {
    used: BTreeSet<&'static str>,
}

impl Frameworks {
    /// Finds names of frameworks in a source file of the host.
    pub fn check(&mut self, name: &str, text: &str, findings: &mut Vec<String>) {
        let is_product = name.starts_with("host/")
            && name.contains("/src/")
            && name.ends_with(".rs")
            && !name.ends_with("_tests.rs")
            && !name.ends_with("testing.rs");
        if !is_product {
            return;
        }
        let allowed = ALLOWED.iter().find(|(file, _)| *file == name);
        for (number, line) in text.lines().enumerate() {
            let Some(found) = named_in(line) else { continue };
            match allowed {
                Some((file, _)) => drop(self.used.insert(file)),
                None => findings.push(format!(
                    "{name}:{}: the host names {found}: let the backend declare what the host must know (`backend_flags`)",
                    number + 1
                )),
            }
        }
    }

    /// Exceptions that no file needs.
    pub fn finish(&self, findings: &mut Vec<String>) {
        let unused = ALLOWED.iter().filter(|(file, _)| !self.used.contains(file));
        findings.extend(unused.map(|(file, why)| {
            format!("xtask/src/tidy/frameworks.rs: {file} needs no exception ({why})")
        }));
    }
}

/// The framework that a line of code names.
fn named_in(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return None;
    }
    let code = line.split(" // ").next().unwrap_or(line).to_lowercase();
    NAMES.iter().chain(LITERALS).find(|name| code.contains(**name)).copied()
}

#[cfg(test)]
#[path = "frameworks_tests.rs"]
mod tests;
