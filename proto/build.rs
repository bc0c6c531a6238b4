//! Compiles the proto files without a system protoc, and keeps the descriptors for the text and JSON forms.
use std::error::Error;
use std::path::{Path, PathBuf};

use prost::Message;
use tonic_prost_build::{Builder, Config};

const V1: &str = "nvidia/inferenceserver/grpc_service.proto";
const V2: &str = "inference/grpc_service.proto";
const HEALTH: &str = "grpc/health/v1/health.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for folder in ["nvidia", "inference", "grpc"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }

    // v1 names types of `inference`, which live in `crate::v2`; a type said to live elsewhere is not generated, so the
    // two packages go separately. v2 comes last because the first pass leaves an empty file under its name.
    generate(&root, &[V1, HEALTH], builder().extern_path(".inference", "crate::v2"))?;
    generate(&root, &[V2], builder())?;

    // The program needs names and numbers at run time, not our comments.
    let mut bare = protox::Compiler::new([&root])?
        .include_imports(true)
        .open_files([V1, V2, HEALTH])?
        .file_descriptor_set();
    for file in &mut bare.file {
        file.source_code_info = None;
    }
    std::fs::write(out.join("descriptors.bin"), bare.encode_to_vec())?;
    Ok(())
}

fn builder() -> Builder {
    tonic_prost_build::configure().bytes(".").btree_map(".").emit_rerun_if_changed(false)
}

fn generate(root: &Path, files: &[&str], builder: Builder) -> Result<(), Box<dyn Error>> {
    let described = protox::compile(files, [root])?;
    let mut config = Config::new();
    config.enable_type_names();
    builder.compile_fds_with_config(described, config)?;
    Ok(())
}
