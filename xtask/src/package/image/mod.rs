//! The container image, as an OCI image layout in a directory, made without a daemon.
//!
//! ```text
//!   base         Debian with sh and curl, which probes and hooks of charts start
//!   server       /opt/tritonserver, and links at the paths of the releases before it
//!   FRAMEWORK    its library in /opt/tritonserver/lib; a layer of its own for each
//! ```
//!
//! The layout has the image VERSION without frameworks, and the image VERSION-FRAMEWORK for each
//! framework that was asked for. They share the blobs of the first two layers.

mod layer;
mod layout;

use super::PackageSource;
use super::debian_root::DebianRoot;
use super::files::{FileContent, PackageFile};
use crate::command::Result;
use crate::paths::Paths;
use crate::runtimes;
use layer::Layer;
use layout::{ImageLayout, ImageSettings};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Frameworks whose libraries can be layers.
pub const FRAMEWORKS: [&str; 2] = ["onnxruntime", "tensorflow"];

const BASE: DebianRoot =
    DebianRoot { name: "image-base", suite: "bookworm", packages: "ca-certificates,curl" };
/// Where Triton's containers have their server.
const HOME: &str = "opt/tritonserver";
/// Programs at the paths of the releases, and what they are.
const LINKS: [(&str, &str); 3] = [
    ("opt/tritonserver/bin/tritonserver", "trtserver"),
    ("opt/tensorrtserver/bin/trtserver", "../../tritonserver/bin/trtserver"),
    ("opt/inference_server/bin/inference_server", "../../tritonserver/bin/trtserver"),
];
/// Directories of Triton's containers that are empty here.
const EMPTY: [&str; 2] = ["caches", "repoagents"];
const USER: (&str, u64) = ("triton-server", 1000);
/// Parts of the install that nobody needs in a container.
const LEFT_OUT: [&str; 5] = ["include/", "python/", "share/man/", "lib/pkgconfig/", "lib/cmake/"];
const ENTRY_POINT: &str = "opt/tritonserver/entrypoint.sh";

/// # Errors
/// The base is missing and cannot be made.
pub fn check_base(paths: &Paths) -> Result<()> {
    BASE.check(paths)
}

/// # Errors
/// The base cannot be made, a library is missing, or a file cannot be written.
pub fn write(paths: &Paths, source: &PackageSource, into: &Path) -> Result<PathBuf> {
    let base = match &source.base {
        Some(base) => base.clone(),
        None => BASE.make(paths)?,
    };
    let mut layout = ImageLayout::create(into.join("image"))?;
    let settings = image_settings(source);
    let common = [
        layout.put_layer(&Layer::from_directory("Debian with sh and curl", &base)?)?,
        layout.put_layer(&server_layer(paths, source, &base)?)?,
    ];
    layout.add_image(source.version, &settings, &common)?;
    for framework in &source.frameworks {
        let own = layout.put_layer(&framework_layer(paths, framework)?)?;
        let layers: Vec<_> = common.iter().cloned().chain([own]).collect();
        layout.add_image(&format!("{}-{framework}", source.version), &settings, &layers)?;
    }
    layout.finish()
}

fn image_settings(source: &PackageSource) -> ImageSettings {
    let directories = LINKS.map(|(path, _)| {
        format!("/{}", path.rsplit_once('/').map_or(path, |(directory, _)| directory))
    });
    let system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let mut labels = json!({
        "org.opencontainers.image.title": "trtserver",
        "org.opencontainers.image.description": "Inference server whose frameworks are plugins",
        "org.opencontainers.image.version": source.version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    if let Some(commit) = &source.commit {
        labels["org.opencontainers.image.revision"] = json!(commit);
    }
    let address = env!("CARGO_PKG_REPOSITORY");
    if !address.is_empty() {
        labels["org.opencontainers.image.source"] = json!(address);
    }
    ImageSettings {
        config: json!({
            "User": format!("{0}:{0}", USER.1),
            "Env": [format!("PATH={}:{system}", directories.join(":"))],
            "Entrypoint": [format!("/{ENTRY_POINT}")],
            "Cmd": ["tritonserver", "--model-repository=/models"],
            "WorkingDir": format!("/{HOME}"),
            "ExposedPorts": { "8000/tcp": {}, "8001/tcp": {}, "8002/tcp": {} },
            "StopSignal": "SIGTERM",
            "Labels": labels,
        }),
    }
}

fn server_layer(paths: &Paths, source: &PackageSource, base: &Path) -> Result<Layer> {
    let (user, id) = USER;
    let needed = |file: &&PackageFile| !LEFT_OUT.iter().any(|part| file.path.starts_with(part));
    let mut files: Vec<_> =
        source.files.iter().filter(needed).map(|file| file.below(HOME)).collect();
    files.extend(LINKS.map(|(path, target)| PackageFile::link(path, target)));
    files.extend(EMPTY.map(|name| PackageFile::directory(format!("{HOME}/{name}"), id)));
    files.push(PackageFile::directory(format!("home/{user}"), id));
    files.push(PackageFile::directory("models", id));
    let script = paths.root.join("packaging/image/entrypoint.sh");
    let script = fs::read(&script).map_err(|e| format!("{}: {e}", script.display()))?;
    files.push(PackageFile::program(ENTRY_POINT, script));
    files.push(with_line(
        base,
        "etc/passwd",
        &format!("{user}:x:{id}:{id}::/home/{user}:/bin/sh"),
    )?);
    files.push(with_line(base, "etc/group", &format!("{user}:x:{id}:"))?);
    Layer::from_files("trtserver", &files)
}

/// A file of the base with one line more.
fn with_line(base: &Path, path: &str, line: &str) -> Result<PackageFile> {
    let file = base.join(path);
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(PackageFile::data(path, format!("{}\n{line}\n", text.trim_end())))
}

/// The library of a framework, from where `cargo xtask runtimes` puts it.
fn framework_layer(paths: &Paths, framework: &str) -> Result<Layer> {
    let names: &[&str] = match framework {
        "tensorflow" => {
            runtimes::tensorflow::fetch(paths)?;
            &["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"]
        }
        _ => {
            runtimes::fetch(paths)?;
            &["libonnxruntime.so.1"]
        }
    };
    let read = |name: &&str| {
        let path = paths.lib().join(name);
        let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let content = FileContent::Data { bytes, executable: true };
        Ok(PackageFile { path: format!("{HOME}/lib/{name}"), content })
    };
    let files: Vec<PackageFile> = names.iter().map(read).collect::<Result<_>>()?;
    Layer::from_files(framework, &files)
}
