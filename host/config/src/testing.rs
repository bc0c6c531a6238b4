//! Start lines for unit tests.

use super::{BuildFacts, ProcessExit, ServerStart, from_args};
use crate::cli;
use std::ffi::OsString;

pub(super) fn run_in(line: &str, env: &[(&str, &str)]) -> Result<ServerStart, ProcessExit> {
    let args = std::iter::once("trtserver").chain(line.split_whitespace()).map(OsString::from);
    let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    let facts = BuildFacts { abi: "1.2", commit: None, features: &["tls", "object-stores"] };
    from_args(args, &env, facts)
}

pub(super) fn run(line: &str) -> Result<ServerStart, ProcessExit> {
    run_in(line, &[])
}

pub(super) fn error_of(line: &str) -> String {
    let stop = run(line).expect_err(line);
    assert_eq!((stop.code, stop.stdout.as_str()), (1, ""), "{line}");
    let hint = format!("Usage: {}\ntrtserver --help lists the flags.\n", cli::USAGE);
    let text = stop.stderr.strip_suffix(&hint).unwrap_or_else(|| panic!("{line}: {}", stop.stderr));
    text.strip_suffix('\n').unwrap().to_owned()
}
