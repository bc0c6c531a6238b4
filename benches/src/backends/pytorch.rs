//! Cost of the PyTorch plugin: packages of AOTInductor through host and plugin in this process,
//! compared with the same calls of torch's C functions.

use super::bare::BareCase;
use super::network::{LARGE, NetworkRow, SMALL, measure_networks};
use super::shim::compile;
use crate::Result;
use crate::options::Options;
use crate::repository::empty;
use crate::table::Table;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use zip::ZipArchive;

pub const TITLE: &str = "pytorch";
/// How the packages are made: they are code for the processor that compiles them.
const PACKAGES: &str = "rows of packages need `python3 examples/pytorch_models.py --resnet50`, with \
                        examples/requirements-pytorch.txt";

const ROWS: [NetworkRow; 2] = [
    NetworkRow {
        name: "backends pytorch digits",
        file: "examples/models-pytorch/digits_pytorch/1/model.pt2",
        input: ("INPUT__0", &[1, 1, 8, 8]),
        output: ("OUTPUT__0", 10),
        target: SMALL,
    },
    NetworkRow {
        name: "backends pytorch resnet50",
        file: "target/zoo-models/resnet50_pytorch/1/model.pt2",
        input: ("INPUT__0", &[1, 3, 224, 224]),
        output: ("OUTPUT__0", 1000),
        target: LARGE,
    },
];

/// The library comes from `cargo xtask runtimes --torch`.
pub fn measure(options: &Options, table: &mut Table) {
    measure_networks(options, table, ("libtorch_cpu.so", &ROWS, PACKAGES), one);
}

fn one(
    options: &Options,
    row: &NetworkRow,
    library: &Path,
    package: PathBuf,
) -> Result<Vec<String>> {
    let folder = empty()?;
    let [stub, compiled] = unpack(&package, folder.path())?;
    let [stub, compiled] = [stub, compiled].map(|path| path.display().to_string());
    let case = BareCase {
        program: include_str!("pytorch.c"),
        arguments: &[&row.shape_text(), &stub, &compiled],
        library,
        files: &[package],
        // The batch is dynamic.
        config: row.config("pytorch", "torch_aoti", -1),
        shape: row.input.1.to_vec(),
        data: row.data(),
        target: row.target,
    };
    case.measure(options)
}

/// The compiled model of a package, for a program without an archive reader, and an empty library in
/// place of the one that compiled models are linked with: torch for CUDA's opens all of CUDA.
fn unpack(package: &Path, folder: &Path) -> Result<[PathBuf; 2]> {
    let wrap = |e: &dyn std::fmt::Display| format!("{}: {e}", package.display());
    let (source, stub) = (folder.join("stub.c"), folder.join("libtorch.so"));
    fs::write(&source, "").map_err(|e| wrap(&e))?;
    compile(folder, &["stub.c", "-shared", "-Wl,-soname,libtorch.so", "-o"], &stub)?;
    let file = File::open(package).map_err(|e| wrap(&e))?;
    let mut archive = ZipArchive::new(file).map_err(|e| wrap(&e))?;
    let name = archive.file_names().find(|name| name.ends_with(".so")).map(str::to_owned);
    let name = name.ok_or_else(|| wrap(&"no compiled model in the package"))?;
    let mut member = archive.by_name(&name).map_err(|e| wrap(&e))?;
    let compiled = folder.join("model.so");
    let mut to = File::create(&compiled).map_err(|e| wrap(&e))?;
    io::copy(&mut member, &mut to).map_err(|e| wrap(&e))?;
    Ok([stub, compiled])
}
