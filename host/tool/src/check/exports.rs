//! The rule for exports: a plugin exports its entry symbols and nothing else.
//!
//! Other exports can be bound to symbols of other libraries that the process has opened, and theirs
//! to them: of two versions of a C++ library one then runs with data of the other.

use super::verdict::ScenarioVerdict;
use abi_stable::library::ROOT_MODULE_LOADER_NAME;
use std::path::Path;
use trtserver_library_file::read_exports;
use trtserver_plugin_api::abi::BACKEND_MAIN;

/// Names in a report.
const SHOWN: usize = 3;

pub fn check_exports(file: &Path) -> ScenarioVerdict {
    let exported = match read_exports(file) {
        Ok(exported) => exported,
        Err(e) => return ScenarioVerdict::Untested(format!("its symbols cannot be read: {e}")),
    };
    let entries = [BACKEND_MAIN, ROOT_MODULE_LOADER_NAME];
    let others: Vec<&str> =
        exported.iter().map(String::as_str).filter(|name| !entries.contains(name)).collect();
    if others.is_empty() {
        return ScenarioVerdict::kept();
    }
    let shown: Vec<String> = others.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
    let more = match others.len() - shown.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    ScenarioVerdict::Warning(format!(
        "it also exports {}{more}: link it with a version script that makes all but '{BACKEND_MAIN}' local",
        shown.join(", ")
    ))
}
