//! Cost of the OpenVINO plugin: ONNX files through host and plugin in this process, compared with
//! the same calls of OpenVINO's C interface.

use super::bare::{BareCase, BareTarget};
use super::engines::{DIGITS, RESNET, ZOO_MODELS};
use crate::Result;
use crate::options::Options;
use crate::table::Table;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};

pub const TITLE: &str = "openvino";
/// Target: share of the bare library's speed for a network of milliseconds.
const MIN_RATIO: f64 = 0.97;
/// Target for one of microseconds: microseconds of CPU time that plugin and host add to a call.
const MAX_ADDED_US: f64 = 5.0;

/// Row, file, names and shapes of its input and output, and target.
type OpenVinoRow = (&'static str, &'static str, (&'static str, &'static [i64]), &'static str, i64);

const ROWS: [OpenVinoRow; 2] = [
    ("backends openvino digits", DIGITS, ("IMAGE", &[1, 1, 8, 8]), "SCORES", 10),
    ("backends openvino resnet50", RESNET, ("image", &[1, 3, 224, 224]), "probabilities", 1000),
];

pub fn measure(options: &Options, table: &mut Table) {
    // The benchmarks do not need the library: `cargo xtask runtimes --openvino`.
    let library = options.dist.join("lib/libopenvino_c.so");
    let mut absent = false;
    for row in ROWS.iter().filter(|row| options.wants(row.0) && library.exists()) {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(row.1);
        match model.exists() {
            true => table.measured(row.0.to_owned(), one(options, row, &library, model)),
            false => absent = true,
        }
    }
    if absent {
        table.remark(ZOO_MODELS.to_owned());
    }
}

fn one(
    options: &Options,
    (name, _, (input, shape), output, classes): &OpenVinoRow,
    library: &Path,
    model: PathBuf,
) -> Result<Vec<String>> {
    let text = shape.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let values = shape.iter().product::<i64>() as usize;
    let data: Vec<u8> =
        (0..values).flat_map(|at| ((at % 17) as f32 / 17.0).to_le_bytes()).collect();
    let case = BareCase {
        program: include_str!("openvino.c"),
        arguments: &[&text],
        library,
        files: &[model],
        config: config(input, shape, output, *classes),
        shape: shape.to_vec(),
        data: Bytes::from(data),
        target: match name.ends_with("digits") {
            true => BareTarget::Added(MAX_ADDED_US),
            false => BareTarget::Ratio(MIN_RATIO),
        },
    };
    case.measure(options)
}

fn config(input: &str, shape: &[i64], output: &str, classes: i64) -> ModelConfig {
    let input = ModelInput {
        name: input.into(),
        data_type: DataType::TypeFp32.into(),
        dims: shape.to_vec(),
        ..Default::default()
    };
    let output = ModelOutput {
        name: output.into(),
        data_type: DataType::TypeFp32.into(),
        dims: vec![1, classes],
        ..Default::default()
    };
    ModelConfig {
        name: "identity".into(),
        backend: "openvino".into(),
        platform: "openvino".into(),
        input: vec![input],
        output: vec![output],
        ..Default::default()
    }
}
