//! `trtserver plugin list` and `plugin check`.
#![allow(clippy::expect_used, reason = "what these tests cannot do is a failure")]

mod check;
mod list;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trtserver_tests::{Ended, compile_c, dist, folder, root, trtserver};

fn tool(command: &str, args: &[&dyn AsRef<Path>]) -> Ended {
    let args = args.iter().map(|w| w.as_ref().as_os_str().to_owned());
    trtserver(["plugin".into(), command.into()].into_iter().chain(args))
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", ended.stdout, ended.stderr))
}

/// The echo backend of tests/plugins/broken/violations.h with one violation.
fn violation(dir: &Path, name: &str) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    let header = root().join("tests/plugins/broken/violations.h");
    let text = format!("#define VIOLATION {name}\n#include \"{}\"\n", header.display());
    fs::write(&source, text).expect("a file");
    compile_c(&source.to_string_lossy(), dir, &name.to_lowercase())
}

#[test]
fn unknown_subcommand_is_refused() {
    let ended = trtserver(["plugin", "lst"]);
    assert_eq!((ended.code(), ended.stdout.as_str()), (2, ""));
    assert!(
        ended.stderr.contains("unknown command 'lst'; expected list, check or new"),
        "{}",
        ended.stderr
    );
    assert_eq!(trtserver(["plugin"]).code(), 2);
}

/// The commands of docs/plugin-tool.md, in order, say what the page shows; `…` stands for any text.
#[test]
fn commands_of_plugin_tool_md() {
    let page = fs::read_to_string(root().join("docs/plugin-tool.md")).expect("the page");
    let dir = folder();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", dist().join("bin").display());
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let pairs: Vec<_> = blocks
        .windows(2)
        .filter(|p| p[0].starts_with("sh\n") && p[1].starts_with("text\n"))
        .collect();
    assert!(pairs.len() >= 4, "{page}");
    for pair in pairs {
        let command = pair[0].trim_start_matches("sh\n");
        let mut bash = Command::new("bash");
        bash.args(["-uc", &format!("exec 2>&1\n{command}")]).current_dir(root());
        let done = bash.env("PATH", &path).env("DIR", dir.path()).output().expect("bash");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let mut rest = said.trim_end();
        let mut pieces = pair[1].trim_start_matches("text\n").trim_end().split('…').enumerate();
        let fits = pieces.all(|(at, piece)| {
            let found = rest.find(piece).filter(|begin| at > 0 || *begin == 0);
            found.map(|begin| rest = &rest[begin + piece.len()..]).is_some()
        });
        assert!(fits, "{command}\nprinted\n{said}\ninstead of\n{}", pair[1]);
    }
}
