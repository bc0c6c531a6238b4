//! The archive of a package: which compiled model is in it, for which device, and what else the
//! plugin has to know before it opens the model. Entries have one directory in front.
//!
//! ```text
//! NAME/archive_format                           `pt2`
//! NAME/data/aotinductor/model/X.wrapper.so      the compiled model, usually with its weights
//! NAME/data/aotinductor/model/X.wrapper.cpp     the code that it was compiled from
//! NAME/data/aotinductor/model/X_metadata.json   the device
//! NAME/data/aotinductor/model/X.json            operators that have no C function
//! ```

use crate::other_files::{explain_archive, explain_file};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// The directory of compiled models, below the first one.
const MODELS: &str = "data/aotinductor/";

/// The model of a package with several.
const DEFAULT_MODEL: &str = "model";

/// Code and descriptions are read up to this size; a network of 10,000 operators has 10 MB.
const MAX_TEXT: u64 = 256 << 20;

/// Metadata names the device under this key.
const DEVICE_KEY: &str = "AOTI_DEVICE_KEY";

type Archive = ZipArchive<BufReader<File>>;

/// A package that can be served.
pub struct Package {
    archive: Archive,
    /// Entry of the compiled model.
    library: String,
    /// The generated code of the model's calls; `None`: it was removed from the package.
    pub code: Option<String>,
}

impl Package {
    /// # Errors
    /// The file is not a package, or not one that this plugin runs. The text goes on after the
    /// file's name and a colon.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|e| format!("cannot be read: {e}"))?;
        let mut archive =
            ZipArchive::new(BufReader::new(file)).map_err(|e| explain_file(path, &e))?;
        let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
        let model = choose_model(&names)?;
        let own: Vec<&str> =
            names.iter().map(String::as_str).filter(|n| is_in(n, &model)).collect();
        let library = find_library(&own)?;
        expect_cpu(&mut archive, &own)?;
        expect_weights_inside(&names)?;
        expect_c_functions(&mut archive, &own)?;
        let stem = library.trim_end_matches(".so");
        let mut instructions = BTreeSet::new();
        let mut code = None;
        for source in own.iter().filter(|name| name.ends_with(".cpp")) {
            let text = read_text(&mut archive, source)?;
            instructions.extend(compiled_for(&text));
            if *source == format!("{stem}.cpp") {
                code = Some(text);
            }
        }
        expect_instructions(&instructions)?;
        let library = library.to_owned();
        Ok(Self { archive, library, code })
    }

    /// Writes the compiled model to a new file.
    ///
    /// # Errors
    /// The archive is damaged, or the file cannot be written.
    pub fn extract(&mut self, to: &Path) -> Result<(), String> {
        let name = &self.library;
        let mut entry = self.archive.by_name(name).map_err(|e| format!("entry '{name}': {e}"))?;
        let mut file = File::options().write(true).create_new(true).open(to);
        let written = file.as_mut().map_err(|e| std::io::Error::new(e.kind(), e.to_string()));
        let written = written.and_then(|file| std::io::copy(&mut entry, file));
        // The reader compares the checksum at the end.
        written
            .map(drop)
            .map_err(|e| format!("entry '{name}' cannot be extracted to {}: {e}", to.display()))
    }
}

/// The name below the first directory.
fn inner_name(entry: &str) -> &str {
    entry.split_once('/').map_or(entry, |(_, rest)| rest)
}

fn is_in(entry: &str, model: &str) -> bool {
    let rest = inner_name(entry).strip_prefix(MODELS).and_then(|rest| rest.strip_prefix(model));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The model of the package: the only one, or the one with the default name.
fn choose_model(names: &[String]) -> Result<String, String> {
    let models = names.iter().filter_map(|name| inner_name(name).strip_prefix(MODELS));
    let models: BTreeSet<&str> = models.filter_map(|rest| Some(rest.split_once('/')?.0)).collect();
    match models.iter().copied().collect::<Vec<_>>().as_slice() {
        [] => Err(explain_archive(names)),
        [only] => Ok((*only).to_owned()),
        _ if models.contains(DEFAULT_MODEL) => Ok(DEFAULT_MODEL.to_owned()),
        many => Err(format!(
            "the package has the models '{}', and none is named '{DEFAULT_MODEL}': expected one model",
            many.join("', '")
        )),
    }
}

fn find_library<'a>(own: &[&'a str]) -> Result<&'a str, String> {
    let libraries: Vec<&str> = own.iter().copied().filter(|name| name.ends_with(".so")).collect();
    match libraries.as_slice() {
        [only] => Ok(only),
        [] => Err(
            "the package has code and not a compiled model, as aot_inductor.package_cpp_only makes it: compile \
             without that option"
                .to_owned(),
        ),
        many => Err(format!("expected one compiled model, found '{}'", many.join("', '"))),
    }
}

/// # Errors
/// The model was compiled for another device.
fn expect_cpu(archive: &mut Archive, own: &[&str]) -> Result<(), String> {
    for name in own.iter().filter(|name| name.ends_with("_metadata.json")) {
        let metadata = read_json(archive, name)?;
        match metadata.get(DEVICE_KEY).and_then(Value::as_str) {
            None | Some("cpu") => {}
            Some(device) => {
                return Err(format!(
                    "the model was compiled for the device '{device}' ({DEVICE_KEY} in '{name}'), expected 'cpu': move \
                     the module and the example inputs to the CPU before torch.export.export, and compile again"
                ));
            }
        }
    }
    Ok(())
}

/// # Errors
/// Weights are not in the compiled model: the functions that set them take C++ objects.
fn expect_weights_inside(names: &[String]) -> Result<(), String> {
    let is_weight = |name: &&String| {
        let name = inner_name(name);
        name.starts_with("data/weights/") || name.ends_with(".blob")
    };
    match names.iter().find(is_weight) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the weights are beside the compiled model (such as '{name}'), expected inside: compile with \
             aot_inductor.package_constants_in_so = True, which is the default, and without \
             package_constants_on_disk_format"
        )),
    }
}

/// # Errors
/// The model calls operators that have no C function in torch's library.
fn expect_c_functions(archive: &mut Archive, own: &[&str]) -> Result<(), String> {
    let is_list = |name: &&&str| name.ends_with(".json") && !name.ends_with("_metadata.json");
    for name in own.iter().filter(is_list) {
        let operators = operator_names(&read_json(archive, name)?);
        if !operators.is_empty() {
            return Err(format!(
                "the model calls operators that have no C function in torch: '{}'; express them by other operators, \
                 or export the model to ONNX",
                operators.into_iter().collect::<Vec<_>>().join("', '")
            ));
        }
    }
    Ok(())
}

/// The operators of a list of calls that go through torch's dispatcher.
fn operator_names(list: &Value) -> BTreeSet<String> {
    let nodes = list.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let target = |node: &Value| {
        let node = node.get("node").unwrap_or(node);
        Some(node.get("target")?.as_str()?.to_owned())
    };
    nodes.map(|node| target(node).unwrap_or_else(|| "unknown".to_owned())).collect()
}

/// The instruction sets that generated code names: the processor has to have them.
fn compiled_for(code: &str) -> impl Iterator<Item = &'static str> {
    [("CPU_CAPABILITY_AVX512", "AVX-512"), ("CPU_CAPABILITY_AVX2", "AVX2"), ("-mamx-tile", "AMX")]
        .into_iter()
        .filter(|(mark, _)| code.contains(mark))
        .map(|(_, name)| name)
}

/// # Errors
/// The processor lacks instructions: the model would end the process.
fn expect_instructions(compiled: &BTreeSet<&'static str>) -> Result<(), String> {
    match compiled.iter().find(|name| !has_instructions(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the model was compiled for a processor with {name}, which this one has not: compile it here, or with \
             ATEN_CPU_CAPABILITY=default (or avx2)"
        )),
    }
}

#[cfg(target_arch = "x86_64")]
fn has_instructions(name: &str) -> bool {
    match name {
        "AVX-512" => {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
        }
        "AVX2" => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        // Code for AMX asks the processor before it uses it.
        _ => true,
    }
}

/// The architecture itself is checked by the compiled model's header.
#[cfg(not(target_arch = "x86_64"))]
fn has_instructions(_: &str) -> bool {
    true
}

fn read_text(archive: &mut Archive, name: &str) -> Result<String, String> {
    let entry = archive.by_name(name).map_err(|e| format!("entry '{name}': {e}"))?;
    let mut bytes = Vec::new();
    let read = entry.take(MAX_TEXT).read_to_end(&mut bytes);
    read.map_err(|e| format!("entry '{name}' cannot be read: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_json(archive: &mut Archive, name: &str) -> Result<Value, String> {
    let text = read_text(archive, name)?;
    serde_json::from_str(&text).map_err(|e| format!("entry '{name}' is not JSON: {e}"))
}

#[cfg(test)]
#[path = "package_tests.rs"]
mod tests;
