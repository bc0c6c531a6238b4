//! Unit tests of `manifest.rs`.

use super::*;
use std::fs;

const WHOLE: &str = r#"
title = "A backend 1.0"
version = "1.0"
machine = "x86_64"
glibc = "2.10"
python = ["3.9", "3.12"]
megabytes = 1
requirements = ["package==1.0 --hash=sha256:00"]
backend = "package/backend"
libpython = "libs/libpython{python}.so"
[[conflicts]]
package = "numpy"
from = "2"
reason = "of a reason"
[[files]]
from = "package/stubs/{python}/stub"
to = "package/backend/stub"
program = true
[[files]]
from = "libs/"
"#;

fn read(text: &str) -> Result<FetchManifest, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.toml");
    fs::write(&file, text).unwrap();
    FetchManifest::read(&file)
}

#[test]
fn names_get_the_version_of_the_interpreter() {
    let manifest = read(WHOLE).unwrap().for_python("3.11");
    assert_eq!(manifest.libpython, Some(PathBuf::from("libs/libpython3.11.so")));
    let members: Vec<_> =
        manifest.files.iter().map(|file| (&*file.from, file.target(), file.program)).collect();
    let stub = ("package/stubs/3.11/stub", "package/backend/stub", true);
    assert_eq!(members, [stub, ("libs/", "libs/", false)]);
}

#[test]
fn wrong_manifests_are_refused() {
    for (from, to, text) in [
        ("title = ", "titel = ", "titel"),
        ("to = \"package/backend/stub\"", "to = \"../stub\"", "'../stub' leads out"),
        ("\"libs/\"", "\"/libs/\"", "'/libs/' leads out"),
        ("backend = \"package/backend\"", "backend = \"..\"", "'..' leads out"),
        ("to = \"package/backend/stub\"", "to = \"package/\"", "must end with a slash"),
        ("version = \"1.0\"", "version = \"1/0\"", "'1/0' is not a file name"),
        (" --hash=sha256:00", "", "requirement 'package==1.0' has no --hash=sha256:"),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let error = read(&WHOLE.replace(from, to)).unwrap_err();
        assert!(error.contains(text) && error.contains("b.toml"), "{to}: {error}");
    }
    let error = FetchManifest::read(Path::new("/nowhere/b.toml")).unwrap_err();
    assert!(error.contains("/nowhere/b.toml"), "{error}");
}

#[test]
fn interpreters() {
    let manifest = read(WHOLE).unwrap();
    let check = |version: &str, machine: &str, glibc: &str, implementation: &str| {
        let facts = format!(
            r#"{{"implementation":"{implementation}","version":[{version}],"machine":"{machine}","glibc":"{glibc}","libpython":"","base":""}}"#
        );
        manifest.check_interpreter(&serde_json::from_str(&facts).unwrap())
    };
    for version in ["3,9", "3,11", "3,12"] {
        assert_eq!(check(version, "x86_64", "2.36", "cpython"), Ok(()), "{version}");
    }
    for (version, machine, glibc, implementation, text) in [
        ("3,8", "x86_64", "2.36", "cpython", "needs CPython 3.9 to 3.12, and '' is cpython 3.8"),
        ("3,13", "x86_64", "2.36", "cpython", "is cpython 3.13; --python=PROGRAM"),
        ("3,10", "x86_64", "2.36", "pypy", "is pypy 3.10"),
        ("3,11", "aarch64", "2.36", "cpython", "is for x86_64, and '' runs on aarch64"),
        ("3,11", "x86_64", "2.9", "cpython", "needs glibc 2.10 or newer, found 2.9"),
        ("3,11", "x86_64", "", "cpython", "found another C library"),
    ] {
        let error = check(version, machine, glibc, implementation).unwrap_err();
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn conflicts() {
    let manifest = read(WHOLE).unwrap();
    let check = |found: Option<&str>| {
        manifest.check_conflicts(Path::new("p"), |package| {
            assert_eq!(package, "numpy");
            found.map(str::to_owned)
        })
    };
    for fine in [None, Some("1.26.4"), Some("unknown")] {
        assert_eq!(check(fine), Ok(()), "{fine:?}");
    }
    for wrong in ["2", "2.0.1", "11.0"] {
        let text = check(Some(wrong)).unwrap_err();
        let expected = format!(
            "does not work with the numpy {wrong} of 'p', because of a reason: `p -m pip install 'numpy<2'`"
        );
        assert!(text.contains(&expected), "{text}");
    }
}
