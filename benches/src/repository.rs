//! Model repositories of the benchmarks.

use crate::Result;
use crate::options::Options;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Models of `examples/models` that run on ONNX Runtime, the first one twice.
const TINY: [&str; 6] =
    ["addsub_fp32", "addsub_int32", "digits", "dynamic_shape", "identity_string", "simple"];
const IDENTITY: &str = r#"name: "identity"
backend: "probe"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"#;

pub fn empty() -> Result<TempDir> {
    tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))
}

/// `identity`, and `addsub_fp32` if ONNX Runtime is installed.
pub fn serving(options: &Options) -> Result<TempDir> {
    let folder = empty()?;
    identity(folder.path())?;
    if has_onnxruntime(options) {
        add_sub(options, folder.path())?;
    }
    Ok(folder)
}

/// `identity`, which enables the response cache.
pub fn cached() -> Result<TempDir> {
    let folder = empty()?;
    let text = format!("{IDENTITY}response_cache {{ enable: true }}\n");
    model(folder.path(), "identity", &text)?;
    Ok(folder)
}

/// The same two models, for another server.
pub fn write(options: &Options, folder: &Path) -> Result<()> {
    identity(folder)?;
    add_sub(options, folder)
}

/// `identity` alone.
pub fn identity(folder: &Path) -> Result<()> {
    model(folder, "identity", IDENTITY)
}

/// Writes a model without files.
pub fn model(folder: &Path, name: &str, text: &str) -> Result<()> {
    let version = folder.join(name).join("1");
    fs::create_dir_all(&version).map_err(|e| format!("{}: {e}", version.display()))?;
    let config = folder.join(name).join("config.pbtxt");
    fs::write(&config, text).map_err(|e| format!("{}: {e}", config.display()))
}

/// `slow`, which takes `milliseconds` and serves one request at a time.
pub fn slow(milliseconds: u32) -> Result<TempDir> {
    let folder = empty()?;
    let text = IDENTITY.replace("\"identity\"", "\"slow\"");
    model(folder.path(), "slow", &(text + &delay(milliseconds)))?;
    Ok(folder)
}

/// Models of 1, 4, … instances, named by [`instances_name`], which take `milliseconds`.
pub fn instances(counts: &[usize], milliseconds: u32) -> Result<TempDir> {
    let folder = empty()?;
    for count in counts {
        let name = instances_name(*count);
        let text = IDENTITY.replace("\"identity\"", &format!("\"{name}\""));
        let group = format!("instance_group {{ count: {count} kind: KIND_CPU }}\n");
        model(folder.path(), &name, &(text + &group + &delay(milliseconds)))?;
    }
    Ok(folder)
}

pub fn instances_name(count: usize) -> String {
    format!("instances_{count}")
}

/// The parameter of a model that takes `milliseconds`.
fn delay(milliseconds: u32) -> String {
    if milliseconds == 0 {
        return String::new();
    }
    format!("parameters {{ key: \"delay_ms\" value {{ string_value: \"{milliseconds}\" }} }}\n")
}

fn add_sub(options: &Options, folder: &Path) -> Result<()> {
    let model = "addsub_fp32";
    copy(&options.models.join(model), &folder.join(model))
}

/// Seven ONNX models of a few hundred bytes to a few kilobytes.
pub fn seven(options: &Options) -> Result<TempDir> {
    let folder = empty()?;
    for model in TINY {
        copy(&options.models.join(model), &folder.path().join(model))?;
    }
    let seventh = folder.path().join("seventh");
    copy(&options.models.join(TINY[0]), &seventh)?;
    let config = seventh.join("config.pbtxt");
    let wrap = |e| format!("{}: {e}", config.display());
    let text = fs::read_to_string(&config).map_err(wrap)?;
    fs::write(&config, text.replace(TINY[0], "seventh")).map_err(wrap)?;
    Ok(folder)
}

/// A thousand ONNX models of a few hundred bytes.
pub fn thousand(options: &Options) -> Result<TempDir> {
    let folder = empty()?;
    let model = options.models.join(TINY[0]);
    let config = model.join("config.pbtxt");
    let text = fs::read_to_string(&config).map_err(|e| format!("{}: {e}", config.display()))?;
    for number in 0..1000 {
        let name = format!("m{number}");
        let copied = folder.path().join(&name);
        copy(&model, &copied)?;
        let config = copied.join("config.pbtxt");
        fs::write(&config, text.replace(TINY[0], &name))
            .map_err(|e| format!("{}: {e}", config.display()))?;
    }
    Ok(folder)
}

pub fn has_onnxruntime(options: &Options) -> bool {
    options.dist.join("lib/libonnxruntime.so.1").exists()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let wrap = |e: std::io::Error| format!("cannot copy {}: {e}", from.display());
    fs::create_dir_all(to).map_err(wrap)?;
    for entry in fs::read_dir(from).map_err(wrap)? {
        let entry = entry.map_err(wrap)?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).map_err(wrap)?;
        }
    }
    Ok(())
}
