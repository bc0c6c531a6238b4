//! Each command of README.md, docs/numbers.md and pages of plugins measures rows, without an error:
//! shown with `--check-only`, which needs no release build.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const PAGES: [&str; 5] = [
    "README.md",
    "docs/numbers.md",
    "docs/choosing-a-backend.md",
    "plugins/openvino/README.md",
    "plugins/trees/README.md",
];

/// The texts that the pages pass to `--only`.
fn rows_on_pages(root: &Path) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let begins = ["", "cargo xtask bench -- "];
        let of_bench = |code: &'_ str| {
            let command =
                begins.iter().find_map(|begin| code.strip_prefix(begin)?.strip_prefix("--only "));
            command.map(|text| text.trim_matches('\'').to_owned())
        };
        rows.extend(text.split('`').filter_map(of_bench));
    }
    rows
}

#[test]
fn each_command_on_the_pages_measures_rows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let dist = std::env::var_os("TRTSERVER_DIST").map(PathBuf::from);
    let dist = dist.unwrap_or_else(|| root.join("target/dist-debug"));
    let program = dist.join("bin/trtserver");
    assert!(program.exists(), "{}: `cargo xtask build --debug` makes it", program.display());
    let rows = rows_on_pages(root);
    assert!(rows.len() > 10, "{rows:?}");
    // Those of many cases first, which have the shortest names: at the end they would run alone.
    let mut rows: Vec<String> = rows.into_iter().collect();
    rows.sort_by_key(String::len);
    let pending = Mutex::new(rows.into_iter());
    let measure = || {
        loop {
            let Some(row) = pending.lock().unwrap().next() else { return };
            let mut bench = Command::new(env!("CARGO_BIN_EXE_trtserver-bench"));
            bench.current_dir(root).args(["--check-only", "--only", &row, "--dist"]).arg(&dist);
            let output = bench.arg("--probe").arg(dist.join("backends")).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            let says = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "--only '{row}':\n{printed}\n{says}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(measure);
        }
    });
}
