//! Programs that the tests use beside compilers and Python, each in the Debian package of its name.

use crate::apt;
use crate::command::Result;

/// Run commands of the pages; tests fail without them.
const OF_PAGES: [&str; 2] = ["curl", "make"];
/// Count and watch what a server does; what needs them is left out without them.
const MEASURING: [&str; 2] = ["strace", "valgrind"];

/// What the tests use: installed if this runs as root. Returns the programs that are left out.
///
/// # Errors
/// A program of the pages is missing, or any of them with `CI=true`.
pub fn install() -> Result<Vec<&'static str>> {
    install_tools(&[OF_PAGES, MEASURING].concat())
}

/// What the gate uses. As [`install`].
pub fn install_measuring() -> Result<Vec<&'static str>> {
    install_tools(&MEASURING)
}

fn install_tools(tools: &[&'static str]) -> Result<Vec<&'static str>> {
    let is_missing = |tool: &&str| apt::capture_output(tool, &["--version"]).is_none();
    let mut missing: Vec<&str> = tools.iter().copied().filter(is_missing).collect();
    if apt::install(&missing) {
        missing.retain(is_missing);
    }
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    match is_error(&missing, in_ci) {
        true => Err(format!("{} not found: {}", missing.join(", "), apt::hint(&missing))),
        false => Ok(missing),
    }
}

fn is_error(missing: &[&str], in_ci: bool) -> bool {
    OF_PAGES.iter().any(|tool| missing.contains(tool)) || (in_ci && !missing.is_empty())
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
