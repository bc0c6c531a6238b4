//! Projects of `trtserver plugin new --framework`: a backend around the library of a framework, in
//! Rust, with what the server's own backends of frameworks share.

use super::{File, InterfaceSource, VENDOR, interface, quoted};

/// What the template calls the backend.
const TEMPLATE: &str = "rust_framework";
/// Name of the crate, which is the folder `plugins/framework` of a checkout.
const CRATE: &str = "trtserver-plugin-framework";

macro_rules! template {
    ($($place:literal from $file:literal),* $(,)?) => {
        &[$(($place, include_str!(concat!("../templates/framework/", $file)))),*]
    };
}

const FILES: &[(&str, &str)] = template![
    "src/lib.rs" from "lib.rs",
    "src/library.rs" from "library.rs",
    "src/model.rs" from "model.rs",
    "src/instance.rs" from "instance.rs",
    "src/tests.rs" from "tests.rs",
    "engine.c" from "engine.c",
    "README.md" from "README.md",
    "Makefile" from "framework.mk",
    "plugin.toml" from "plugin.toml",
    "request.json" from "request.json",
    "Cargo.lock" from "lock.toml",
    "models/rust_framework_example/config.pbtxt" from "config.pbtxt",
    "models/rust_framework_example/1/model.toy" from "model.toy",
    "models/rust_framework_completed/config.pbtxt" from "completed.pbtxt",
    "models/rust_framework_completed/1/model.toy" from "model.toy",
];
const MANIFEST: &str = include_str!("../templates/framework/manifest.toml");
const IGNORED: &str = include_str!("../../sources/gitignore");

/// # Errors
/// The checkout of `--plugin-api` lacks the crate.
pub fn framework_project(name: &str, source: &InterfaceSource) -> Result<Vec<File>, String> {
    let manifest = MANIFEST
        .replace("{about}", source.about())
        .replace("{plugin_api}", &source.dependency("")?)
        .replace("{framework}", &framework_dependency(source)?)
        .replace("{testkit}", &source.dependency("testkit")?);
    let more = [("Cargo.toml", manifest.as_str()), (".gitignore", IGNORED)];
    let fill = |text: &str| text.replace(TEMPLATE, name);
    let named = |(path, text): &(&str, &str)| (fill(path), fill(text));
    let mut files: Vec<File> = FILES.iter().chain(&more).map(named).collect();
    if *source == InterfaceSource::Vendored {
        files.extend(super::vendored_interface()?);
        let under = |(path, text): File| (format!("{}/{path}", vendor()), text);
        files.extend(interface::framework_files()?.into_iter().map(under));
    }
    Ok(files)
}

/// The folder of a project that has the crates.
fn vendor() -> &'static str {
    VENDOR.split('/').next().unwrap_or(VENDOR)
}

/// The dependency on the crate, as in Cargo.toml.
fn framework_dependency(source: &InterfaceSource) -> Result<String, String> {
    let path = match source {
        InterfaceSource::Vendored => format!("{}/plugins/framework", vendor()),
        InterfaceSource::Git(_) => return source.dependency(""),
        InterfaceSource::Folder(folder) => {
            let found = folder.join("../plugins/framework");
            let found = found.canonicalize().ok().filter(|path| path.join("Cargo.toml").exists());
            let found = found.ok_or_else(|| {
                format!(
                    "trtserver plugin new: --plugin-api={}: a project with --framework needs the crate {CRATE} as \
                     well, which is in plugins/framework of a whole checkout",
                    folder.display()
                )
            })?;
            let text = found.to_str().ok_or_else(|| {
                format!(
                    "trtserver plugin new: {}: Cargo takes paths in UTF-8 only",
                    found.display()
                )
            })?;
            text.to_owned()
        }
    };
    Ok(format!("{{ path = {} }}", quoted(&path)))
}
