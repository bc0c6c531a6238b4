//! `cargo xtask page-test`: the status page in headless Chromium, with models under load
//! (`tests/page/page_test.py`). Pictures of each view are in `target/page-test`. With `--boards` the
//! rules and the board of `deploy` on a Prometheus that scrapes a server (`boards_test.py`).

use crate::apt;
use crate::build;
use crate::command::{Result, run};
use crate::paths::Paths;
use crate::python;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the program of the browser, in place of those in `PATH`.
const VARIABLE: &str = "TRTSERVER_CHROMIUM";
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Its package, and fonts without which pictures have no text.
const PACKAGES: [&str; 2] = ["chromium", "fonts-dejavu-core"];

/// Builds unless `no_build`; the rules and the board need Debian's package of Prometheus.
pub fn boards_test(paths: &Paths, no_build: bool) -> Result<()> {
    if find_in_path(&["promtool"]).is_none() {
        apt::install(&["prometheus"]);
        if find_in_path(&["promtool"]).is_none() {
            return Err(format!("--boards needs Prometheus: {}", apt::hint(&["prometheus"])));
        }
    }
    let dist = build::debug_dist(paths, no_build)?;
    let mut command = Command::new(python::environment(paths, &python::PAGE)?);
    command.arg(paths.root.join("tests/page/boards_test.py")).arg("--dist").arg(dist);
    run(&mut command, "the board or the rules do not fit the metrics: see above")
}

/// Builds unless `no_build`; `arguments` are passed to the test.
pub fn page_test(paths: &Paths, no_build: bool, arguments: &[String]) -> Result<()> {
    let chromium = find_or_install()?;
    let dist = build::debug_dist(paths, no_build)?;
    let interpreter = python::environment(paths, &python::PAGE)?;
    // For one of the programs that the page shows.
    let client = python::environment(paths, &python::V2)?;
    let mut command = Command::new(interpreter);
    command.arg(paths.root.join("tests/page/page_test.py")).arg("--dist").arg(dist);
    command.arg("--chromium").arg(chromium).arg("--client-python").arg(client);
    command.arg("--out").arg(paths.target.join("page-test")).args(arguments);
    run(&mut command, "the page is not as it should be: see above")
}

fn find_or_install() -> Result<PathBuf> {
    if let Some(given) = env::var_os(VARIABLE) {
        return Ok(given.into());
    }
    if let Some(found) = find_in_path(&NAMES) {
        return Ok(found);
    }
    apt::install(&PACKAGES);
    find_in_path(&NAMES).ok_or_else(|| {
        let hint = apt::hint(&PACKAGES);
        format!("page-test needs Chromium: {hint}, or set {VARIABLE}=/path/to/chromium")
    })
}

fn find_in_path(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let places: Vec<PathBuf> = env::split_paths(&path).collect();
    let mut programs = names.iter().flat_map(|name| places.iter().map(move |dir| dir.join(name)));
    programs.find(|program| Path::is_file(program))
}
