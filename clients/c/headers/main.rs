//! `trtserver-client-headers DIR`: writes the C++ classes of the v1 messages (`*.pb.h`) below the
//! `include` folder DIR, from the descriptors of `proto/`. `cargo xtask build` runs it.

mod class;
mod file;

use prost::Message;
use prost_types::FileDescriptorSet;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Files of the original, which are also the names of ours.
const FILES: [&str; 5] = ["request_status", "model_config", "api", "server_status", "grpc_service"];

/// Include folders of the releases whose headers are installed.
const RELEASES: [&str; 2] = ["v1.11", "v0.12"];

fn main() -> ExitCode {
    let Some(out) = std::env::args_os().nth(1) else {
        eprintln!("usage: trtserver-client-headers DIR");
        return ExitCode::FAILURE;
    };
    match write_file(Path::new(&out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("trtserver-client-headers: {e}");
            ExitCode::FAILURE
        }
    }
}

fn write_file(out: &Path) -> Result<(), Box<dyn Error>> {
    let all = FileDescriptorSet::decode(trtserver_proto::DESCRIPTORS)?;
    for name in FILES {
        // The configuration belongs to both generations; the other messages are those of v1.
        let folder = if name == "model_config" { "inference" } else { "nvidia/inferenceserver" };
        let path = format!("{folder}/{name}.proto");
        let found = all.file.iter().find(|file| file.name() == path);
        let file = found.ok_or_else(|| format!("no descriptor of {path}"))?;
        put(&out.join("trtserver_client").join(header(name)), &file::file_text(file)?)?;
        for release in RELEASES {
            let release = out.join(release);
            put(&release.join(header(name)), &forward_text(name, ".."))?;
            put(&release.join("src/core").join(header(name)), &forward_text(name, "../../.."))?;
        }
    }
    Ok(())
}

/// `api.pb.h`.
fn header(name: &str) -> String {
    format!("{name}.pb.h")
}

/// A header at one of the paths by which programs include the messages.
fn forward_text(name: &str, up: &str) -> String {
    format!("#pragma once\n#include \"{up}/trtserver_client/{}\"\n", header(name))
}

fn put(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    let wrap = |e| format!("cannot write {}: {e}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrap)?;
    }
    std::fs::write(path, text).map_err(wrap)?;
    Ok(())
}
