//! What the programs are made of: a bill of materials in CycloneDX's form, and the licence texts of
//! the crates.

use super::files::PackageFile;
use crate::command::{Result, cargo, output};
use crate::paths::Paths;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A crate from a registry that is linked into a program or library of the install.
pub struct LinkedCrate {
    name: String,
    version: String,
    license: String,
    directory: String,
}

/// `licences/CRATE-VERSION/FILE` of each crate that has such a file.
///
/// # Errors
/// A file cannot be read.
pub fn licence_texts(crates: &[LinkedCrate]) -> Result<Vec<PackageFile>> {
    let mut files = Vec::new();
    for linked in crates {
        let directory = Path::new(&linked.directory);
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries.flatten().filter(|entry| entry.path().is_file()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let upper = name.to_uppercase();
            if ["LICEN", "COPYING", "NOTICE"].iter().any(|begin| upper.starts_with(begin)) {
                let bytes = fs::read(entry.path())
                    .map_err(|e| format!("{}: {e}", entry.path().display()))?;
                let LinkedCrate { name: krate, version, .. } = linked;
                files.push(PackageFile::data(format!("licences/{krate}-{version}/{name}"), bytes));
            }
        }
    }
    Ok(files)
}

/// The bill of materials as JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn bill_of_materials(crates: &[LinkedCrate]) -> Result<Vec<u8>> {
    let components: Vec<Value> = crates.iter().map(component).collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "name": "trtserver",
            "version": env!("CARGO_PKG_VERSION"),
            "licenses": [{ "expression": "Apache-2.0" }],
        }},
        "components": components,
    });
    serde_json::to_vec_pretty(&bill).map_err(|e| format!("the bill of materials: {e}"))
}

fn component(linked: &LinkedCrate) -> Value {
    let LinkedCrate { name, version, license, .. } = linked;
    json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": [{ "expression": license }],
    })
}

/// The crates of the install's packages, sorted by name and version.
///
/// # Errors
/// `cargo metadata` fails.
pub fn linked_crates(paths: &Paths) -> Result<Vec<LinkedCrate>> {
    let mut command = cargo();
    command.current_dir(&paths.root).args(["metadata", "--format-version=1", "--locked"]);
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let text = output(command.args(["--filter-platform", &target]), "")?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|e| format!("`cargo metadata`: {e}"))?;
    let roots: Vec<&str> = crate::build::release_packages().collect();
    Ok(select_linked(&metadata, &roots))
}

/// The crates of `cargo metadata` that `roots` depend on, other than for builds and tests.
fn select_linked(metadata: &Value, roots: &[&str]) -> Vec<LinkedCrate> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (packages, nodes) = (list(&metadata["packages"]), list(&metadata["resolve"]["nodes"]));
    let is_root = |package: &&Value| roots.contains(&package["name"].as_str().unwrap_or_default());
    let mut open: Vec<String> =
        packages.iter().filter(is_root).map(|package| text(&package["id"])).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !linked.insert(id.clone()) {
            continue;
        }
        let Some(node) = nodes.iter().find(|node| node["id"] == id.as_str()) else { continue };
        let normal = |dependency: &&Value| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
        };
        let dependencies = list(&node["deps"]);
        open.extend(dependencies.iter().filter(normal).map(|found| text(&found["pkg"])));
    }
    let mut crates: Vec<LinkedCrate> = packages
        .iter()
        .filter(|package| !package["source"].is_null() && linked.contains(&text(&package["id"])))
        .map(|package| LinkedCrate {
            name: text(&package["name"]),
            version: text(&package["version"]),
            license: text(&package["license"]).replace('/', " OR "),
            directory: Path::new(&text(&package["manifest_path"]))
                .parent()
                .map_or_else(String::new, |parent| parent.display().to_string()),
        })
        .collect();
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    crates
}

#[cfg(test)]
#[path = "sbom_tests.rs"]
mod tests;
