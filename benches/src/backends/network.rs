//! Networks of one FP32 input and one FP32 output, beside the bare library: what the rows of OpenVINO
//! and of PyTorch share.

use super::bare::BareTarget;
use crate::Result;
use crate::options::Options;
use crate::requests::bytes_of_floats;
use crate::table::Table;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};

/// For a network of microseconds: those of CPU time that plugin and host add to a call.
pub const SMALL: BareTarget = BareTarget::Added(5.0);
/// For a network of milliseconds: share of the bare library's speed.
pub const LARGE: BareTarget = BareTarget::Ratio(0.97);

pub struct NetworkRow {
    pub name: &'static str,
    /// From the root of the sources.
    pub file: &'static str,
    /// Name and shape of a request's input.
    pub input: (&'static str, &'static [i64]),
    /// Name and columns of the output.
    pub output: (&'static str, i64),
    pub target: BareTarget,
}

impl NetworkRow {
    /// The shape of the input for a command line.
    pub fn shape_text(&self) -> String {
        self.input.1.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
    }

    /// Numbers between 0 and 1.
    pub fn data(&self) -> Bytes {
        let count = self.input.1.iter().product::<i64>() as usize;
        let values: Vec<f32> = (0..count).map(|at| (at % 17) as f32 / 17.0).collect();
        bytes_of_floats(&values)
    }

    /// Its first dimension is `rows` in the configuration.
    pub fn config(&self, backend: &str, platform: &str, rows: i64) -> ModelConfig {
        let mut dims = self.input.1.to_vec();
        dims[0] = rows;
        let input = ModelInput {
            name: self.input.0.into(),
            data_type: DataType::TypeFp32.into(),
            dims,
            ..Default::default()
        };
        let output = ModelOutput {
            name: self.output.0.into(),
            data_type: DataType::TypeFp32.into(),
            dims: vec![rows, self.output.1],
            ..Default::default()
        };
        ModelConfig {
            name: "identity".into(),
            backend: backend.into(),
            platform: platform.into(),
            input: vec![input],
            output: vec![output],
            ..Default::default()
        }
    }
}

/// Measures the rows whose file exists, if the library does: benchmarks do not need it. `absent` says
/// how the files are made.
pub fn measure_networks(
    options: &Options,
    table: &mut Table,
    (library, rows, absent): (&str, &[NetworkRow], &str),
    one: fn(&Options, &NetworkRow, &Path, PathBuf) -> Result<Vec<String>>,
) {
    let library = options.dist.join("lib").join(library);
    let mut is_absent = false;
    for row in rows.iter().filter(|row| options.wants(row.name) && library.exists()) {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(row.file);
        match model.exists() {
            true => table.measured(row.name.to_owned(), one(options, row, &library, model)),
            false => is_absent = true,
        }
    }
    if is_absent {
        table.remark(absent.to_owned());
    }
}
