//! The commands in the user documentation give the documented output.

use std::fs;
use tempfile::TempDir;
use trtserver_tests::polling::polling;
use trtserver_tests::scheduled::accumulator;
use trtserver_tests::versions::{Version, model};
use trtserver_tests::{Running, Server, dist, folder, python, python_v2, root};

fn output_matches(page: &str) {
    let server = Server::new().copy_models("examples/models").start();
    python_v2(&server, "run_docs.py", &[page]);
}

#[test]
fn requests_md() {
    output_matches("docs/requests.md");
}

#[test]
fn troubleshooting_md() {
    output_matches("docs/troubleshooting.md");
}

#[test]
fn tutorial_md() {
    let server = Server::new()
        .copy_models("examples/models")
        .flag("--model-control-mode=explicit")
        .flag("--load-model=dynamic_shape")
        .start();
    python_v2(&server, "run_docs.py", &["docs/tutorial.md"]);
}

#[test]
fn administration_md() {
    let (_dir, page) = sections("docs/administration.md", |section| {
        section.starts_with("Description of the HTTP API")
    });
    let server = Server::new().copy_models("examples/models").start();
    python_v2(&server, "run_docs.py", &[&page]);
}

#[test]
fn batching_md() {
    output_matches("docs/batching.md");
}

#[test]
fn status_page_md() {
    output_matches("docs/status-page.md");
}

#[test]
fn tracing_md() {
    let folder = folder();
    let trace = folder.path().join("trace.json").display().to_string();
    let server = Server::new()
        .copy_models("examples/models")
        .flag(format!("--trace-config=triton,file={trace}"))
        .flag("--trace-config=level=TIMESTAMPS")
        .flag("--trace-config=rate=1")
        .flag("--trace-slow-ms=60000")
        .start();
    python_v2(&server, "run_docs.py", &[&format!("--set=TRACE={trace}"), "docs/tracing.md"]);
}

#[test]
fn ensembles_md() {
    output_matches("docs/ensembles.md");
}

/// The sections of a page for which `wanted` is true, in a file.
fn sections(page: &str, wanted: impl Fn(&str) -> bool) -> (TempDir, String) {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let kept: String = text.split_inclusive("\n## ").filter(|section| wanted(section)).collect();
    assert!(kept.contains("```sh"), "{page}: {kept}");
    let dir = folder();
    let copy = dir.path().join("page.md");
    fs::write(&copy, kept).unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
    (dir, copy.display().to_string())
}

#[test]
fn repository_md() {
    let server = Server::new()
        .copy_models("examples/models")
        .flag("--model-control-mode=explicit")
        .flag("--load-model=dynamic_shape")
        .start();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("--set=PATH={}:{path}", dist().join("bin").display());
    let (_dir, page) = sections("docs/repository.md", |section| !section.contains("$MODELS"));
    python_v2(&server, "run_docs.py", &[&path, &page]);
}

#[test]
fn repository_md_polling() {
    let server = polling().start();
    let models = format!("--set=MODELS={}", server.models().path().display());
    let (_dir, page) = sections("docs/repository.md", |section| section.contains("$MODELS"));
    python_v2(&server, "run_docs.py", &[&models, &page]);
}

#[test]
fn upgrade_md() {
    let dir = folder();
    Version::named("fortune", "1.0", 10.0).put(dir.path(), "fortune/1.0");
    let server = Server::new()
        .backend_dir(dir.path())
        .model("daily", model("daily", "fortune", ""))
        .model("weekly", model("weekly", "fortune", ""))
        .model("pinned", model("pinned", "fortune", "1.0"))
        .flag("--model-control-mode=explicit")
        .flag("--load-model=daily")
        .start();
    let folder = format!("--set=BACKENDS={}", dir.path().display());
    python_v2(&server, "run_docs.py", &[&folder, "docs/upgrade.md"]);
}

/// The server accepts the configurations shown in docs/batching.md for models of fixed shape;
/// tests/wire/ragged_batching.rs has the others.
#[test]
fn batching_md_configurations() {
    let page = fs::read_to_string(root().join("docs/batching.md")).unwrap_or_default();
    // Every second piece is a fenced block; commands and output name a language.
    let blocks = page.split("```").skip(1).step_by(2);
    let configs: Vec<_> = blocks
        .filter(|block| block.starts_with("\nmax_batch_size") && !block.contains("batch_input"))
        .collect();
    assert_eq!(configs.len(), 3, "{page}");
    let mut server = Server::new();
    for (i, config) in configs.iter().enumerate() {
        let name = format!("m{i}");
        let rest = accumulator(&name, 1, "slot", "").replace("max_batch_size: 1\n", "");
        server = server.model(&name, rest + config);
    }
    assert!(server.start().stop().success());
}

/// The commands of a page with sections for `PYTHON_V1` and `PYTHON_V2`. Without a v1 client for
/// this machine its section is left out.
fn output_with_clients_matches(server: &Running, page: &str) {
    let set = |generation: &str| {
        let program = python(generation)?;
        Some(format!("--set=PYTHON_{}={}", generation.to_uppercase(), program.display()))
    };
    let mut arguments: Vec<String> = ["v1", "v2"].into_iter().filter_map(set).collect();
    let whole = arguments.len() == 2;
    let path = std::env::var("PATH").unwrap_or_default();
    arguments.push(format!("--set=PATH={}:{path}", dist().join("bin").display()));
    let (_dir, page) = sections(page, |section| whole || !section.contains("PYTHON_V1"));
    arguments.push(page);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    python_v2(server, "run_docs.py", &arguments);
}

#[test]
fn shared_memory_md() {
    let server =
        Server::new().copy_models("examples/models").flag("--allow-client-shm=true").start();
    output_with_clients_matches(&server, "docs/shared-memory.md");
}

/// A server with the flags of the page's start line, whose repository is `/models`.
fn started_as_shown(page: &str) -> Running {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let line = text.lines().find_map(|line| line.strip_prefix("trtserver --model-"));
    let Some((_, flags)) = line.and_then(|line| line.split_once("=/models ")) else {
        panic!("{page} has no start line");
    };
    let server = Server::new().copy_models("examples/models");
    flags.split(' ').fold(server, |server, flag| server.flag(flag)).start()
}

#[test]
fn from_trtis_md() {
    let page = "docs/from-trtis.md";
    output_with_clients_matches(&started_as_shown(page), page);
}

#[test]
fn from_triton_md() {
    let page = "docs/from-triton.md";
    output_with_clients_matches(&started_as_shown(page), page);
}

#[test]
fn isolation_md() {
    output_matches("docs/isolation.md");
}
