//! Unit tests of `pip.rs`.

use super::*;

#[test]
fn missing_module_names_the_debian_package() {
    assert_eq!(missing_modules("python3", "nothing,11"), None);
    for (python, found, module, package) in [
        ("python3", "ensurepip,11", "lacks ensurepip", "install python3-venv"),
        ("/usr/bin/python3", "ensurepip,11", "lacks ensurepip", "install python3-venv"),
        (
            "python3.12",
            "venv and ensurepip,12",
            "lacks venv and ensurepip",
            "install python3.12-venv",
        ),
    ] {
        let error = missing_modules(python, found).unwrap();
        assert!(error.contains(module) && error.ends_with(package), "{error}");
        assert!(!error.contains("index"), "{error}");
    }
}

#[test]
fn failure_of_pip_is_explained_by_its_output() {
    for (printed, expected) in [
        ("/x/bin/python: No module named pip\n", "has no pip"),
        (
            "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by \
             'NewConnectionError('<...>: Failed to establish a new connection: [Errno 111]')': /simple/numpy/\n\
             ERROR: Could not find a version that satisfies the requirement numpy==1 (from versions: none)\n\
             ERROR: No matching distribution found for numpy==1\n",
            "is not reachable",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement numpy==9 (from versions: 1.0, 2.0)\n\
             ERROR: No matching distribution found for numpy==9\n",
            "was reached",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "other files",
        ),
        ("ERROR: Could not install packages: [Errno 28] No space left on device\n", "disk is full"),
        ("error: subprocess-exited-with-error\n", "output of pip above"),
    ] {
        assert!(explain_failure(printed).contains(expected), "{printed}");
    }
}

#[test]
fn unreachable_index_is_told_from_a_missing_pip() {
    let folder = std::env::temp_dir().join(format!("xtask-pip-{}", std::process::id()));
    install_environment(Path::new("python3"), &folder).unwrap();
    let python = folder.join("bin/python");
    let download = || {
        let mut pip = pip(&python, "download");
        // A port that nothing listens on.
        pip.args([
            "--isolated",
            "--retries=1",
            "--index-url=http://127.0.0.1:9/simple",
            "numpy==1",
        ]);
        run_pip(pip.arg("--dest").arg(&folder)).unwrap_err()
    };
    let unreachable = download();
    assert!(unreachable.contains("the package index is not reachable"), "{unreachable}");
    for entry in fs::read_dir(folder.join("lib")).unwrap().flatten() {
        fs::remove_dir_all(entry.path().join("site-packages/pip")).unwrap();
    }
    let absent = download();
    assert!(absent.contains("the virtual environment has no pip"), "{absent}");
    fs::remove_dir_all(&folder).unwrap();
}
