//! Packs the sources of crates into files of `OUT_DIR`, which `trtserver plugin new --lang rust`
//! unpacks into projects: `interface.gz` has trtserver-plugin-api and trtserver-plugin-testkit,
//! `framework.gz` what projects with `--framework` need besides.
//!
//! Each file is a line "PATH LENGTH" and its text. Manifests are resolved, since a project is not
//! in our workspace.

use flate2::{Compression, write::GzEncoder};
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Links to the files of the checkout, which are files in the published crate. A folder with a
/// manifest would be a crate of its own, hence their names.
const SOURCES: &str = "sources";
/// Files and folders of [`SOURCES`], and where they are in a project.
type Packed = &'static [(&'static str, &'static str)];

/// In a project's copy of `plugin-api`.
const INTERFACE: Packed = &[
    ("interface.toml", "Cargo.toml"),
    ("LICENSE", "LICENSE"),
    ("interface", "src"),
    ("testkit.toml", "testkit/Cargo.toml"),
    ("LICENSE", "testkit/LICENSE"),
    ("testkit", "testkit/src"),
];

/// Beside it, in the same places as in the checkout.
const FRAMEWORK: Packed = &[
    ("framework.toml", "plugins/framework/Cargo.toml"),
    ("LICENSE", "plugins/framework/LICENSE"),
    ("framework", "plugins/framework/src"),
    ("model-files.toml", "model-files/Cargo.toml"),
    ("LICENSE", "model-files/LICENSE"),
    ("model-files", "model-files/src"),
    ("proto-wire.toml", "proto/wire/Cargo.toml"),
    ("LICENSE", "proto/wire/LICENSE"),
    ("proto-wire", "proto/wire/src"),
];

fn main() -> Result<(), Box<dyn Error>> {
    pack("interface.gz", INTERFACE)?;
    pack("framework.gz", FRAMEWORK)
}

fn pack(name: &str, packed: Packed) -> Result<(), Box<dyn Error>> {
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join(SOURCES);
    let workspace = sources.join("workspace.toml");
    let mut files = Vec::new();
    for (path, place) in packed {
        let path = sources.join(path);
        println!("cargo:rerun-if-changed={}", path.display());
        list(&path, Path::new(place), &mut files)?;
    }
    println!("cargo:rerun-if-changed={}", workspace.display());
    files.sort();
    let workspace = fs::read_to_string(workspace)?;
    let packed = File::create(PathBuf::from(env::var("OUT_DIR")?).join(name))?;
    let mut packed = GzEncoder::new(packed, Compression::best());
    for (place, file) in files {
        let mut text = fs::read_to_string(&file)?;
        if place.ends_with("Cargo.toml") {
            let depth = place.components().count() - 1;
            text = resolved(&text, &workspace, &"../".repeat(depth))?;
        }
        writeln!(packed, "{} {}", place.display(), text.len())?;
        packed.write_all(text.as_bytes())?;
    }
    packed.finish()?;
    Ok(())
}

/// Adds the file, or the files below the folder, with their places.
fn list(
    path: &Path,
    place: &Path,
    files: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    if !path.is_dir() {
        files.push((place.to_owned(), path.to_owned()));
        return Ok(());
    }
    fs::read_dir(path)?.try_for_each(|entry| {
        let entry = entry?;
        list(&entry.path(), &place.join(entry.file_name()), files)
    })
}

/// The manifest with the values of the workspace, whose folder is `up` of it, without lints and
/// dependencies of tests.
fn resolved(manifest: &str, workspace: &str, up: &str) -> Result<String, String> {
    let cut = manifest.split("\n# `trtserver plugin new`").next().unwrap_or(manifest);
    let mut text = String::new();
    // Projects need none of the features that have dependencies of their own.
    for line in cut.lines().filter(|line| !line.ends_with("optional = true }")) {
        match (line.strip_suffix(".workspace = true"), line.split_once(" = [\"dep:")) {
            (Some(key), _) => {
                let of_key = |l: &&str| l.strip_prefix(key).is_some_and(|l| l.starts_with(" = "));
                let value = workspace.lines().find(of_key);
                let value =
                    value.ok_or_else(|| format!("no `{key}` in the workspace's manifest"))?;
                text += &value.replace("path = \"", &format!("path = \"{up}"));
            }
            (None, Some((feature, _))) => text += &format!("{feature} = []"),
            (None, None) => text += line,
        }
        text.push('\n');
    }
    Ok(text)
}
