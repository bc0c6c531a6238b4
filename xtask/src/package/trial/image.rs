//! The container image: its layers are unpacked, and it is started as a container starts it.

use super::root::TrialRoot;
use super::{SUITES, Trial};
use crate::command::{Result, run, say};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const REQUEST: &str = "{\"inputs\":[{\"name\":\"INPUT\",\"datatype\":\"FP32\",\"shape\":[2,2],\
                       \"data\":[1,2,3,4]}]}";
/// Command lines of the containers of three releases: a relative path, as in some charts, and the
/// programs found by their names.
const COMMANDS: [&str; 4] =
    ["bin/tritonserver", "tritonserver", "/opt/tensorrtserver/bin/trtserver", "inference_server"];

/// Another reader of image layouts, which checks the digests.
const READER: &str = "skopeo";

pub fn try_image(trial: &Trial) -> Result<()> {
    let layout = trial.packages.join("image");
    let index = read_json(&layout.join("index.json"))?;
    let reader = TrialRoot::copy(trial.paths, &SUITES[1].make(trial.paths)?, READER)?;
    reader.run(&["apt-get", "-q", "update"])?;
    reader.run(&["apt-get", "-q", "install", "-y", "--no-install-recommends", READER])?;
    reader.put_directory(&layout, "try/image")?;
    for descriptor in index["manifests"].as_array().into_iter().flatten() {
        let name = descriptor["annotations"]["org.opencontainers.image.ref.name"].as_str();
        let name = name.unwrap_or_default();
        let manifest = read_json(&blob(&layout, descriptor))?;
        let root = TrialRoot::empty(trial.paths, "image")?;
        for layer in manifest["layers"].as_array().into_iter().flatten() {
            let mut unpack = Command::new("tar");
            unpack.args(["--gzip", "--same-owner", "--same-permissions", "-xf"]);
            run(unpack.arg(blob(&layout, layer)).arg("-C").arg(root.path()), "")?;
        }
        let config = read_json(&blob(&layout, &manifest["config"]))?;
        try_root(trial, &root, &config["config"], name.ends_with("onnxruntime"))?;
        let image = format!("oci:/try/image:{name}");
        reader.run(&[READER, "inspect", &image])?;
        reader.run(&[READER, "copy", &image, &format!("oci:/try/copy:{name}")])?;
        say(format!("package: the image {name} answered, and skopeo has copied it"));
    }
    Ok(())
}

fn try_root(trial: &Trial, root: &TrialRoot, config: &Value, has_models: bool) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for directory in ["proc", "dev", "tmp"] {
        let _ = fs::create_dir_all(root.path().join(directory));
    }
    root.put_directory(&trial.paths.root.join("packaging/try"), "try")?;
    root.put_directory(
        &trial.paths.root.join("examples/models/dynamic_shape"),
        "try/models/dynamic_shape",
    )?;
    let models = if has_models { "/try/models" } else { "/models" };
    let (user, entry) = (text(&config["User"]), text(&config["Entrypoint"][0]));
    let environment = config["Env"].as_array().cloned().unwrap_or_default();
    let enter = format!("cd {} && exec \"$@\"", text(&config["WorkingDir"]));
    for program in COMMANDS {
        let port = free_port()?.to_string();
        let repository = format!("--model-store={models}");
        let command =
            ["sh", "-c", &enter, "sh", "sh", "/try/answer.sh", &port, &entry, program, &repository];
        let mut command = root.command(&[&format!("--userspec={user}")], &command);
        let variables = environment.iter().filter_map(|line| line.as_str()?.split_once('='));
        command.envs(variables);
        if has_models {
            command.env("MODEL_REQUEST", REQUEST);
        }
        run(&mut command, &format!("the image did not serve with the command line {program}"))?;
    }
    Ok(())
}

fn read_json(path: &Path) -> Result<Value> {
    let wrap = |e: String| format!("{}: {e}", path.display());
    let text = fs::read(path).map_err(|e| wrap(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| wrap(e.to_string()))
}

fn blob(layout: &Path, descriptor: &Value) -> std::path::PathBuf {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    layout.join("blobs").join(digest.replace(':', "/"))
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(listener.map_err(|e| format!("no free port: {e}"))?.port())
}
