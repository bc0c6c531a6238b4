//! Cost of the PyTorch plugin: packages of AOTInductor through host and plugin in this process,
//! compared with the same calls of torch's C functions.

use super::bare::{BareCase, BareTarget};
use super::shim::compile;
use crate::Result;
use crate::options::Options;
use crate::repository::empty;
use crate::table::Table;
use bytes::Bytes;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};
use zip::ZipArchive;

pub const TITLE: &str = "pytorch";
/// Target: share of the bare library's speed for a network of milliseconds.
const MIN_RATIO: f64 = 0.97;
/// Target for one of microseconds: microseconds of CPU time that plugin and host add to a call.
const MAX_ADDED_US: f64 = 5.0;
/// How the packages are made: they are code for the processor that compiles them.
const PACKAGES: &str = "rows of packages need `python3 examples/pytorch_models.py --resnet50`, with \
                        examples/requirements-pytorch.txt";

/// Row, file, shape of the input, columns of the output, and target.
type PyTorchRow = (&'static str, &'static str, &'static [i64], i64, BareTarget);

const ROWS: [PyTorchRow; 2] = [
    (
        "backends pytorch digits",
        "examples/models-pytorch/digits_pytorch/1/model.pt2",
        &[1, 1, 8, 8],
        10,
        BareTarget::Added(MAX_ADDED_US),
    ),
    (
        "backends pytorch resnet50",
        "target/zoo-models/resnet50_pytorch/1/model.pt2",
        &[1, 3, 224, 224],
        1000,
        BareTarget::Ratio(MIN_RATIO),
    ),
];

pub fn measure(options: &Options, table: &mut Table) {
    // The benchmarks do not need the library: `cargo xtask runtimes --torch`.
    let library = options.dist.join("lib/libtorch_cpu.so");
    let mut absent = false;
    for row in ROWS.iter().filter(|row| options.wants(row.0) && library.exists()) {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(row.1);
        match model.exists() {
            true => table.measured(row.0.to_owned(), one(options, row, &library, model)),
            false => absent = true,
        }
    }
    if absent {
        table.remark(PACKAGES.to_owned());
    }
}

fn one(
    options: &Options,
    (_, _, shape, columns, target): &PyTorchRow,
    library: &Path,
    package: PathBuf,
) -> Result<Vec<String>> {
    let folder = empty()?;
    let [stub, compiled] = unpack(&package, folder.path())?;
    let text = shape.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let values = shape.iter().product::<i64>() as usize;
    let data: Vec<u8> =
        (0..values).flat_map(|at| ((at % 17) as f32 / 17.0).to_le_bytes()).collect();
    let case = BareCase {
        program: include_str!("pytorch.c"),
        arguments: &[&text, &stub.display().to_string(), &compiled.display().to_string()],
        library,
        files: &[package],
        config: config(shape, *columns),
        shape: shape.to_vec(),
        data: Bytes::from(data),
        target: *target,
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

fn config(shape: &[i64], columns: i64) -> ModelConfig {
    let mut dims = shape.to_vec();
    // The batch.
    dims[0] = -1;
    let input = ModelInput {
        name: "INPUT__0".into(),
        data_type: DataType::TypeFp32.into(),
        dims,
        ..Default::default()
    };
    let output = ModelOutput {
        name: "OUTPUT__0".into(),
        data_type: DataType::TypeFp32.into(),
        dims: vec![-1, columns],
        ..Default::default()
    };
    ModelConfig {
        name: "identity".into(),
        backend: "pytorch".into(),
        platform: "torch_aoti".into(),
        input: vec![input],
        output: vec![output],
        ..Default::default()
    }
}
