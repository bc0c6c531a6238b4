//! `trtserver backend fetch`: backends out of packages, from a local folder in place of an index.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use trtserver_tests::triton_backends::rogues;
use trtserver_tests::{Server, dist, folder, python};

/// Writes a package of these members (`NAME=FILE` each) and prints its SHA-256.
const PACK: &str = r#"
import hashlib, sys, zipfile
path, name, version, *members = sys.argv[1:]
info = "%s-%s.dist-info/" % (name, version)
with zipfile.ZipFile(path, "w") as package:
    for member in members:
        inside, file = member.split("=", 1)
        package.write(file, inside)
    package.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
    package.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    package.writestr(info + "RECORD", "")
print(hashlib.sha256(open(path, "rb").read()).hexdigest())
"#;

/// A package with the backend `fetched`, and a manifest for it.
struct LocalIndex {
    folder: TempDir,
    sha256: String,
}

fn interpreter() -> PathBuf {
    python("build").unwrap_or_else(|| panic!("no environment of build tools"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl LocalIndex {
    fn new() -> Self {
        let (folder, backends) = (folder(), rogues(&["fetched"]));
        let library = backends.path().join("fetched/libtriton_fetched.so");
        let package = folder.path().join("a_backend-1.0-py3-none-any.whl");
        let stub = folder.path().join("stub");
        fs::write(&stub, "#!/bin/sh\n").unwrap_or_else(|e| panic!("{}: {e}", stub.display()));
        let mut command = Command::new(interpreter());
        command.args(["-c", PACK]).arg(&package).args(["a_backend", "1.0"]);
        command.arg(format!("root/libs/libtriton_fetched.so={}", library.display()));
        command.arg(format!("root/stubs/stub={}", stub.display()));
        let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(done.status.success(), "{}", text(&done.stderr));
        Self { folder, sha256: text(&done.stdout).trim().to_owned() }
    }

    /// A manifest with these lines in place of others.
    fn manifest(&self, changes: &[(&str, &str)]) -> PathBuf {
        let mut manifest = format!(
            "title = \"A backend\"\nversion = \"1.0\"\nmachine = \"{}\"\nglibc = \"2.2\"\npython = [\"3.1\", \"3.99\"]\n\
             megabytes = 1\nrequirements = [\"a-backend==1.0 --hash=sha256:{}\"]\nbackend = \"root/backends/fetched\"\n\
             [[files]]\nfrom = \"root/libs/\"\nto = \"root/backends/fetched/\"\n\
             [[files]]\nfrom = \"root/stubs/stub\"\nto = \"root/backends/fetched/stub\"\nprogram = true\n",
            std::env::consts::ARCH,
            self.sha256
        );
        for (from, to) in changes {
            assert!(manifest.contains(from), "{from}: {manifest}");
            manifest = manifest.replace(from, to);
        }
        let count = fs::read_dir(self.folder.path()).into_iter().flatten().count();
        let file = self.folder.path().join(format!("manifest{count}.toml"));
        fs::write(&file, manifest).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        file
    }
}

/// Runs the command with pip's settings for a folder of packages.
fn fetch(name: &str, packages: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(dist().join("bin/trtserver"));
    command.args(["backend", "fetch", name]).args(args);
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", packages).env("PIP_NO_CACHE_DIR", "1");
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn option(name: &str, value: &Path) -> String {
    format!("--{name}={}", value.display())
}

#[test]
fn backend_out_of_a_package_serves() {
    let (index, place) = (LocalIndex::new(), folder());
    let backends = place.path().join("new/backends");
    let interpreter = option("python", &interpreter());
    let (into, manifest) = (option("into", &backends), option("manifest", &index.manifest(&[])));
    let args = [&*interpreter, &into, &manifest];
    let done = fetch("fetched", index.folder.path(), &args);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let line =
        format!("trtserver --model-repository=models --backend-directory={}", backends.display());
    assert!(text(&done.stdout).contains(&line), "{}", text(&done.stdout));
    assert!(text(&done.stderr).contains("(1 MB)"), "{}", text(&done.stderr));
    let runs = Command::new(backends.join("fetched/stub")).status();
    assert!(runs.is_ok_and(|status| status.success()), "the program cannot be executed");
    // Nothing is asked of an index that has it already.
    let again = fetch("fetched", Path::new("/nowhere"), &args);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("is there already"), "{}", text(&again.stderr));
    let model = "backend: \"fetched\"\nmax_batch_size: 0\n\
                 input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
                 output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n";
    let server = Server::new().triton_start_line().backend_dir(&backends).model("m", model).start();
    let body =
        r#"{"id":"good","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[1]}]}"#;
    let response = server.post("/v2/models/m/infer", &[], body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["outputs"][0]["data"][0], 5);
    assert!(server.stop().success());
}

/// Each refusal says why, and leaves no backend behind.
#[test]
fn what_cannot_be_fetched_is_refused() {
    let (index, place) = (LocalIndex::new(), folder());
    let backends = place.path().join("backends");
    let file = place.path().join("file");
    fs::write(&file, "").unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let zeros = "0".repeat(64);
    let (python, into) = (option("python", &interpreter()), option("into", &backends));
    let other = option("into", &file.join("backends"));
    let ok = option("manifest", &index.manifest(&[]));
    let changed = |from: &str, to: &str| option("manifest", &index.manifest(&[(from, to)]));
    let refused = |name: &str, args: &[&str], parts: &[&str]| {
        let done = fetch(name, index.folder.path(), args);
        let said = text(&done.stderr);
        assert_eq!((done.status.code(), text(&done.stdout)), (Some(1), String::new()), "{said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: no {part:?} in {said}");
        }
        assert!(!backends.join(name).exists(), "{args:?}: {said}");
    };
    let known = "trtserver backend fetch nothing: unknown backend 'nothing'; expected 'python'";
    refused("nothing", &[&into], &[known]);
    refused("a-b", &[&into, &ok], &["letters, digits and _, not '-'"]);
    refused(
        "fetched",
        &[&python, &other, &ok],
        &["unable to write", "file/backends", "--into=DIR"],
    );
    refused("fetched", &["--python=/bin/true", &into, &ok], &["'/bin/true' is not a Python"]);
    refused("fetched", &["--python=/nowhere/p", &into, &ok], &["unable to run '/nowhere/p'"]);
    let old = changed("\"3.99\"", "\"3.2\"");
    refused("fetched", &[&python, &into, &old], &["A backend needs CPython 3.1 to 3.2, and '"]);
    let new = changed("\"2.2\"", "\"99.1\"");
    refused("fetched", &[&python, &into, &new], &["A backend needs glibc 99.1 or newer, found 2."]);
    let hash = changed(&index.sha256, &zeros);
    let sums = ["another SHA-256 than the fetch manifest says", &zeros, &index.sha256];
    refused("fetched", &[&python, &into, &hash], &sums);
    let absent = changed("a-backend==1.0", "a-backend==2.0");
    refused("fetched", &[&python, &into, &absent], &["the package index does not have", "==2.0"]);
    let member = changed("root/stubs/stub", "root/stubs/bust");
    let lacks = "no member 'root/stubs/bust' in a_backend-1.0-py3-none-any.whl";
    refused("fetched", &[&python, &into, &member], &[lacks]);
    let own = backends.join("own");
    fs::create_dir_all(&own).unwrap_or_else(|e| panic!("{}: {e}", own.display()));
    let kept = fetch("own", index.folder.path(), &[&python, &into, &ok]);
    assert!(text(&kept.stderr).contains("exists and was not fetched"), "{}", text(&kept.stderr));
    assert_eq!(kept.status.code(), Some(1));
}
