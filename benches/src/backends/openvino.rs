//! Cost of the OpenVINO plugin: ONNX files through host and plugin in this process, compared with
//! the same calls of OpenVINO's C interface.

use super::bare::BareCase;
use super::engines::{DIGITS, RESNET, ZOO_MODELS};
use super::network::{LARGE, NetworkRow, SMALL, measure_networks};
use crate::Result;
use crate::options::Options;
use crate::table::Table;
use std::path::{Path, PathBuf};

pub const TITLE: &str = "openvino";

const ROWS: [NetworkRow; 2] = [
    NetworkRow {
        name: "backends openvino digits",
        file: DIGITS,
        input: ("IMAGE", &[1, 1, 8, 8]),
        output: ("SCORES", 10),
        target: SMALL,
    },
    NetworkRow {
        name: "backends openvino resnet50",
        file: RESNET,
        input: ("image", &[1, 3, 224, 224]),
        output: ("probabilities", 1000),
        target: LARGE,
    },
];

/// The library comes from `cargo xtask runtimes --openvino`.
pub fn measure(options: &Options, table: &mut Table) {
    measure_networks(options, table, ("libopenvino_c.so", &ROWS, ZOO_MODELS), one);
}

fn one(options: &Options, row: &NetworkRow, library: &Path, model: PathBuf) -> Result<Vec<String>> {
    let case = BareCase {
        program: include_str!("openvino.c"),
        arguments: &[&row.shape_text()],
        library,
        files: &[model],
        config: row.config("openvino", "openvino", 1),
        shape: row.input.1.to_vec(),
        data: row.data(),
        target: row.target,
    };
    case.measure(options)
}
