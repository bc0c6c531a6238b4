//! Clients that send more than the server can decode or hold: others do not notice, and memory
//! stays within its budget.

mod decoding;
mod half_heads;
mod heavy_connections;
mod idle_calls;
mod memory;

use std::io::{Seek, Write};
use std::process::Command;

/// Compresses by `gzip`.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let run = || -> std::io::Result<Vec<u8>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(Command::new("gzip").arg("-c").stdin(file).output()?.stdout)
    };
    run().unwrap_or_else(|e| panic!("gzip: {e}"))
}

/// A JSON request of `count` numbers in one tensor.
fn json_numbers(count: usize) -> Vec<u8> {
    let head =
        format!(r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[{count}],"data":["#);
    [head.as_bytes(), &b"0,".repeat(count - 1), b"0]}]}"].concat()
}

/// A model of one FP32 tensor of any length.
fn wide() -> &'static str {
    r#"
    backend: "probe"
    input [{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }]
    output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }]
    "#
}
