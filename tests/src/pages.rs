//! Executes a page (README, tutorial) as its reader would: runs the commands, starts the server,
//! compares the output.
//!
//! A fenced block marked `sh` is a command, run by bash where the one before it ended; the next
//! block, if it is marked `text`, is its whole output, where `…` stands for any text on the line. A
//! block without a mark that begins with `trtserver --model-repository` starts that server on free
//! ports, which replace `localhost:8000` to `:8002` in later commands. Other blocks are ignored.

use crate::install::{dist, keep_bytecode, python, root};
use crate::server::{Running, Server};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// State after the last command.
pub struct Followed {
    /// The server that the page started last.
    pub server: Option<Running>,
    pub commands: usize,
}

/// Follows the page's text, beginning in `folder`. `TRTSERVER` is the checkout, and the server's
/// program is on the path.
#[track_caller]
pub fn follow(page: &Path, folder: &Path) -> Followed {
    follow_with(page, folder, |server| server)
}

/// The same; `more` is applied to each server that is started.
#[track_caller]
pub fn follow_with(page: &Path, folder: &Path, more: impl Fn(Server) -> Server) -> Followed {
    let text = fs::read_to_string(page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
    let blocks = blocks(&text);
    let mut followed = Followed { server: None, commands: 0 };
    let mut here = folder.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for (i, (mark, block)) in blocks.iter().enumerate() {
        if mark.is_empty() && block.starts_with("trtserver --model-repository ") {
            // The previous server ends first, as a reader's would.
            drop(followed.server.take());
            followed.server = Some(more(served(block, &here)).start());
        }
        if *mark != "sh" {
            continue;
        }
        let (said, then) = run(block, &here, followed.server.as_ref());
        followed.commands += 1;
        here = then;
        if let Some(("text", expected)) = blocks.get(i + 1) {
            assert!(
                fits(expected, &said),
                "{}: {block}printed\n{said}\ninstead of\n{expected}",
                page.display()
            );
        }
    }
    followed
}

/// Mark and contents of each fenced block.
pub fn blocks(text: &str) -> Vec<(&str, &str)> {
    let inside = text.split("```").skip(1).step_by(2);
    inside.map(|block| block.split_once('\n').unwrap_or((block, ""))).collect()
}

fn served(command: &str, here: &Path) -> Server {
    let args: Vec<&str> = command.split_whitespace().collect();
    let ["trtserver", "--model-repository", models, "--backend-dir", backends, more @ ..] =
        &args[..]
    else {
        panic!("not understood: {command}");
    };
    let server = Server::new().copy_models(here.join(models)).backend_dir(here.join(backends));
    more.iter().fold(server, |server, flag| server.flag(*flag))
}

fn run(command: &str, here: &Path, server: Option<&Running>) -> (String, PathBuf) {
    let mut text = command.to_owned();
    if let Some(server) = server {
        text = text.replace("localhost:8000", server.http());
        text = text.replace("localhost:8001", server.grpc());
        text = text.replace("localhost:8002", server.metrics_address());
    }
    // The working directory, on the last line.
    text += "\necho; pwd";
    let mut path = dist().join("bin").into_os_string();
    if let Some(python) = python("v2").as_deref().and_then(Path::parent) {
        path.push(":");
        path.push(python);
    }
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    let done = keep_bytecode(&mut bash)
        .args(["-euo", "pipefail", "-c", &text])
        .current_dir(here)
        .env("PATH", path)
        .env("TRTSERVER", root())
        .env("LC_ALL", "C.UTF-8")
        // `cargo build --release` of a page compiles all dependencies anew: a third less work.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        // Pages set the target folder themselves.
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap_or_else(|e| panic!("bash: {e}"));
    let said = String::from_utf8_lossy(&done.stdout);
    let problems = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command}\n{}\n{said}{problems}", done.status);
    let (said, then) = said.trim_end().rsplit_once('\n').unwrap_or_default();
    (said.trim_end().to_owned(), then.into())
}

fn fits(expected: &str, said: &str) -> bool {
    let (expected, mut said) = (expected.trim_end().lines(), said.lines());
    expected.into_iter().all(|line| said.next().is_some_and(|said| fits_line(line, said)))
        && said.next().is_none()
}

fn fits_line(expected: &str, said: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = said.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    // The last part must be at the end of the line.
    last.map_or(rest.is_empty(), |part| said.ends_with(part))
}
