//! The fetch manifest of the Python backend: it names files that the package has, and all libraries
//! that they need.

use std::collections::BTreeSet;
use std::fs;
use trtserver_library_file::DynamicSection;
use trtserver_tests::{Server, dist, folder, python_v2, root, triton};

#[test]
fn manifest_names_files_of_the_package_and_all_that_they_need() {
    let file = dist().join("plugins/triton/fetch/python.toml");
    let manifest = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let manifest: toml::Table = manifest.parse().unwrap_or_else(|e| panic!("{e}"));
    let text = |value: &toml::Value| value.as_str().unwrap_or_default().to_owned();
    let listed = manifest["files"].as_array().unwrap_or_else(|| panic!("no files")).iter();
    let listed: Vec<String> = listed.map(|file| text(&file["from"])).collect();
    let libraries = triton().join("../../nvidia_pytriton.libs");
    let release = libraries.canonicalize().unwrap_or_else(|e| panic!("{e}")).join("..");
    let (mut open, mut seen) = (Vec::new(), BTreeSet::new());
    for name in &listed {
        // Of the other package, or not in the cache.
        if name.starts_with("numpy") || name.contains(".dist-info/") {
            continue;
        }
        for minor in 9..=12 {
            let name = name.replace("{python}", &format!("3.{minor}"));
            assert!(release.join(&name).is_file(), "the package has no {name}");
            open.push(name);
        }
    }
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) || name.ends_with(".py") {
            continue;
        }
        let needed =
            DynamicSection::read(&release.join(&name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        for library in needed.needed {
            let inside = format!("nvidia_pytriton.libs/{library}");
            // The server stands in for Triton's.
            if library.starts_with("libtritonserver") || !release.join(&inside).is_file() {
                continue;
            }
            assert!(
                library.starts_with("libpython") || listed.contains(&inside),
                "{name} needs {inside}"
            );
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
}

/// The command of docs/triton-backends.md prints what the page shows, and what it has fetched serves:
/// `cargo test -p trtserver-tests --test wire -- --ignored fetched_with_triton`
#[test]
#[ignore = "downloads 74 MB"]
fn fetched_python_backend_serves() {
    let (cache, dir) = (folder(), folder());
    let page = fs::read_to_string(root().join("docs/triton-backends.md")).unwrap_or_default();
    let section = page.split("\n## ").find(|section| section.starts_with("Start"));
    let copy = dir.path().join("page.md");
    fs::write(&copy, section.unwrap_or_default()).unwrap_or_else(|e| panic!("{e}"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("--set=PATH={}:{path}", dist().join("bin").display());
    let home = format!("--set=XDG_CACHE_HOME={}", cache.path().display());
    let any = Server::new().start();
    python_v2(&any, "run_docs.py", &[&path, &home, &copy.display().to_string()]);
    assert!(any.stop().success());
    let backends = cache.path().join("trtserver/backends");
    let server = Server::new().triton_start_line().backend_dir(backends);
    let server = server.copy_models("tests/triton/models").start();
    python_v2(&server, "triton_python.py", &["--without=errors-in-streams"]);
    assert!(server.stop().success());
}
