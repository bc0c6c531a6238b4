//! Compiles `proto/netdef.proto` without a system protoc: the messages, and their descriptors for
//! the text form.

use prost::Message;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    // `fuzz/caffe2` builds the same sources from another folder.
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let mut folders = manifest.ancestors().map(|folder| folder.join("plugins/caffe2/proto"));
    let proto = folders.find(|folder| folder.is_dir()).ok_or("no folder plugins/caffe2/proto")?;
    println!("cargo:rerun-if-changed={}", proto.join("netdef.proto").display());
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut described = protox::compile(["netdef.proto"], [proto])?;
    for file in &mut described.file {
        file.source_code_info = None;
    }
    std::fs::write(out.join("netdef.bin"), described.encode_to_vec())?;
    prost_build::Config::new().compile_fds(described)?;
    Ok(())
}
