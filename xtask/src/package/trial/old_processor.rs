//! The wheel's server on a processor of 2010, which QEMU emulates: a program that was compiled for the
//! processor of the building machine stops there with SIGILL.

use super::root::TrialRoot;
use super::{ENVIRONMENT, Trial};
use crate::command::{Result, say};
use std::fs;
use std::path::Path;

/// With the AES instructions, for which the hash of tensors is another one, and without AVX.
const PROCESSOR: &str = "Westmere";
/// A copy of the model whose requests the response cache keeps: hashes of tensors are C code with
/// variants for several processors.
const MODELS: &str = "try/models-cached";
const CACHE: &str = "\nresponse_cache { enable: true }\n";

pub fn try_wheel(trial: &Trial, root: &TrialRoot) -> Result<()> {
    root.run(&["apt-get", "-q", "update"])?;
    root.run(&["apt-get", "-q", "install", "-y", "--no-install-recommends", "qemu-user"])?;
    let model = format!("{MODELS}/dynamic_shape");
    root.put_directory(&root.path().join("try/models/dynamic_shape"), &model)?;
    let config = root.path().join(&model).join("config.pbtxt");
    let wrap = |e| format!("{}: {e}", config.display());
    let text = fs::read_to_string(&config).map_err(wrap)?;
    fs::write(&config, text + CACHE).map_err(wrap)?;
    // Python would only start it, and QEMU runs one program.
    let python = Path::new(ENVIRONMENT.trim_start_matches('/')).join("lib");
    let backend = root.find(&python, "libtrtserver_onnxruntime.so")?;
    let package = backend.as_deref().and_then(|file| Path::new(file).ancestors().nth(3));
    let package = package.ok_or_else(|| format!("no ONNX backend below {ENVIRONMENT}/lib"))?;
    let server = package.join("bin/trtserver").display().to_string();
    let emulated =
        ["/usr/bin/qemu-x86_64", "-cpu", PROCESSOR, &server, "--cache-config=local,size=1048576"];
    trial.answer(root, "dynamic_shape_large", &format!("/{MODELS}"), &emulated)?;
    say(format!("package: {}: wheel[onnx] answered on a processor of 2010", root.name));
    Ok(())
}
