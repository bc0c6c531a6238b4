//! `cargo xtask api-test`: schemathesis sends what the server's own OpenAPI documents allow, and
//! what they do not, and compares the responses with them (`tests/api/api_test.py`). Minutes, so it
//! is not one of the tests.

use crate::build;
use crate::command::{Result, run};
use crate::paths::Paths;
use crate::python;
use std::process::Command;

/// Builds unless `no_build`; `arguments` are passed to the test.
pub fn api_test(paths: &Paths, no_build: bool, arguments: &[String]) -> Result<()> {
    let dist = build::debug_dist(paths, no_build)?;
    let mut command = Command::new(python::environment(paths, &python::API)?);
    command.arg(paths.root.join("tests/api/api_test.py")).arg("--dist").arg(dist).args(arguments);
    run(&mut command, "responses differ from the description: see above")
}
