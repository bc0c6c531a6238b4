//! `cargo xtask docs`: the book out of `docs/`, and the references of the Rust crates and the Python
//! packages beside it, in `target/book/html`. Every link of the book must lead somewhere.
//!
//! mdBook is compiled on first use, by its own lock file; nothing else of this program needs it.

mod html_links;
mod stage;

use crate::command::{Result, cargo, output, run, say};
use crate::paths::Paths;
use crate::python;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MDBOOK: &str = "0.5.4";
/// Crates that programs of others depend on, and the names of their libraries.
const CRATES: [(&str, &str); 3] = [
    ("trtserver-plugin-api", "trtserver_plugin_api"),
    ("trtserver-plugin-testkit", "trtserver_plugin_testkit"),
    ("trtserver-client", "trtserver_client"),
];
const PACKAGES: [&str; 2] = ["trtserver_client", "tensorrtserver"];
/// Its first page.
const FIRST: &str = "docs/introduction.html";

/// Builds everything, and checks the links.
pub fn docs(paths: &Paths) -> Result<()> {
    let mdbook = install_mdbook(paths)?;
    let book = paths.target.join("book");
    let references = references();
    stage::stage(&paths.root, &book, &references)?;
    run(Command::new(mdbook).arg("build").arg(&book), "the book cannot be built: see above")?;
    let html = book.join("html");
    write_redirect(&html)?;
    build_rust_reference(paths, &html.join("api/rust"))?;
    build_python_reference(paths, &html.join("api/python"))?;
    html_links::check(&html)?;
    say(format!("open {}", html.join("index.html").display()));
    Ok(())
}

/// Name and page of each reference, from the top of the book.
fn references() -> Vec<(String, String)> {
    let rust = CRATES
        .map(|(name, library)| (format!("Rust: {name}"), format!("api/rust/{library}/index.html")));
    let python = PACKAGES
        .map(|package| (format!("Python: {package}"), format!("api/python/{package}.html")));
    rust.into_iter().chain(python).collect()
}

fn install_mdbook(paths: &Paths) -> Result<PathBuf> {
    let folder = paths.target.join("tools");
    let program = folder.join("bin/mdbook");
    let is_there = || {
        let version = Command::new(&program).arg("--version").output();
        version.is_ok_and(|out| {
            String::from_utf8_lossy(&out.stdout).trim() == format!("mdbook v{MDBOOK}")
        })
    };
    if !is_there() {
        say(format!("compiling mdBook {MDBOOK} into {} (minutes)", paths.short(&folder)));
        let mut install = cargo();
        install.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--force"]);
        install.args(["--no-default-features", "--features", "search", "--root"]).arg(&folder);
        // Not with the flags and the lock file of this workspace.
        install.env_remove("CARGO_TARGET_DIR").current_dir(std::env::temp_dir());
        run(&mut install, "cargo xtask docs needs mdBook from crates.io")?;
    }
    match is_there() {
        true => Ok(program),
        false => Err(format!("{} is not mdBook {MDBOOK}", program.display())),
    }
}

/// The first page of mdBook would have links as if it were in the top folder.
fn write_redirect(html: &Path) -> Result<()> {
    let text = format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>trtserver</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; url={FIRST}\">\n<a href=\"{FIRST}\">trtserver</a>\n"
    );
    let index = html.join("index.html");
    fs::write(&index, text).map_err(|e| format!("cannot write {}: {e}", index.display()))
}

fn build_rust_reference(paths: &Paths, into: &Path) -> Result<()> {
    let mut doc = cargo();
    doc.args(["doc", "--no-deps"]).current_dir(&paths.root);
    for (name, _) in CRATES {
        doc.args(["-p", name]);
    }
    doc.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links");
    run(&mut doc, "the reference of the Rust crates cannot be built: see above")?;
    stage::copy_tree(&paths.target.join("doc"), into)
}

fn build_python_reference(paths: &Paths, into: &Path) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "-p", "trtserver-client-c"]).current_dir(&paths.root);
    run(&mut build, "the Python packages call the client library")?;
    let python = python::environment(paths, &python::DOCS)?;
    let mut pdoc = Command::new(python);
    pdoc.args(["-m", "pdoc", "--docformat", "google", "-o"]).arg(into).args(PACKAGES);
    pdoc.env("PYTHONPATH", paths.root.join("clients/python"));
    pdoc.env("PYTHONDONTWRITEBYTECODE", "1");
    pdoc.env("TRTSERVER_CLIENT_LIBRARY", paths.target.join("debug/libtrtserver_client.so"));
    output(&mut pdoc, "the reference of the Python packages cannot be built: see above").map(drop)
}
