//! Cost of the plugin of decision trees: the digits models of the examples through host and plugin
//! in this process, compared with the same calls of the C interfaces of LightGBM and XGBoost, with
//! one thread. CPU time.

use super::bare::{BareCase, BareTarget};
use crate::Result;
use crate::options::Options;
use crate::table::Table;
use bytes::Bytes;
use std::path::Path;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};

pub const TITLE: &str = "trees";
/// Target for one row: microseconds of CPU time that plugin and host add to a call.
const MAX_ADDED_US: f64 = 3.0;
/// Target for many rows: share of the C interface's speed.
const MIN_RATIO: f64 = 0.95;
const FEATURES: usize = 64;
const CLASSES: usize = 10;

/// A framework, its library, and its model.
const FRAMEWORKS: [(&str, &str, &str); 2] = [
    ("lightgbm", "lib_lightgbm.so", "examples/models-trees/digits_lightgbm/1/model.txt"),
    ("xgboost", "libxgboost.so", "examples/models-trees/digits_xgboost/1/model.ubj"),
];

pub fn measure(options: &Options, table: &mut Table) {
    for framework in FRAMEWORKS {
        for rows in [1, 1000] {
            let row = format!("backends trees {} {rows}", framework.0);
            // The benchmarks do not need the libraries: `cargo xtask runtimes --trees`.
            let library = options.dist.join("lib").join(framework.1);
            if options.wants(&row) && library.exists() {
                table.measured(row, one(options, framework, &library, rows));
            }
        }
    }
}

fn one(
    options: &Options,
    (platform, _, model): (&str, &str, &str),
    library: &Path,
    rows: usize,
) -> Result<Vec<String>> {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(model);
    let case = BareCase {
        program: include_str!("trees.c"),
        arguments: &[platform],
        library,
        files: &[model],
        config: config(platform),
        shape: vec![rows as i64, FEATURES as i64],
        data: rows_of_pixels(rows),
        target: match rows {
            1 => BareTarget::Added(MAX_ADDED_US),
            _ => BareTarget::Ratio(MIN_RATIO),
        },
    };
    case.measure(options)
}

/// Numbers between 0 and 1 that differ from row to row.
fn rows_of_pixels(rows: usize) -> Bytes {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 28) as f32 / 16.0).to_le_bytes()
    };
    (0..rows * FEATURES).flat_map(|_| next()).collect::<Vec<u8>>().into()
}

fn config(platform: &str) -> ModelConfig {
    let input = ModelInput {
        name: "input__0".into(),
        data_type: DataType::TypeFp32.into(),
        dims: vec![-1, FEATURES as i64],
        ..Default::default()
    };
    let output = ModelOutput {
        name: "output__0".into(),
        data_type: DataType::TypeFp32.into(),
        dims: vec![-1, CLASSES as i64],
        ..Default::default()
    };
    ModelConfig {
        name: "identity".into(),
        backend: "fil".into(),
        platform: platform.into(),
        input: vec![input],
        output: vec![output],
        ..Default::default()
    }
}
