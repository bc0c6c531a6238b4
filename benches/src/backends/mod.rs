//! Overhead between request and backend: the `custom.h` shim, the plugins of TensorFlow, of decision
//! trees, of OpenVINO and of PyTorch, and isolation; one file in two engines; a small ONNX model on
//! one core.

mod bare; // a plugin compared with the C API of its library
mod engines; // one ONNX file in OpenVINO and in ONNX Runtime
mod isolation; // an isolated model compared with the same local one
mod network; // what the rows of OpenVINO and PyTorch share
mod onnx_small; // a small ONNX model on one core, beside the bare library
mod openvino; // the plugin compared with OpenVINO's C API
mod pytorch; // the plugin compared with torch's C functions
pub mod shim; // a library behind the shim compared with direct calls
mod tensorflow; // the plugin compared with TensorFlow's C API
mod trees; // the plugin compared with the C APIs of LightGBM and XGBoost

use crate::Result;
use crate::options::Options;
use crate::table::Table;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let mut shim_calls = Table::new(shim::COLUMNS);
    let mut isolated = Table::new(isolation::COLUMNS);
    shim::measure(options, &mut shim_calls)?;
    let mut tensorflow_calls = Table::new(tensorflow::COLUMNS);
    tensorflow::measure(options, &mut tensorflow_calls);
    let bare = |title| Table::new(&[&[title], &bare::COLUMNS[..]].concat());
    let mut trees_calls = bare(trees::TITLE);
    trees::measure(options, &mut trees_calls);
    let mut openvino_calls = bare(openvino::TITLE);
    openvino::measure(options, &mut openvino_calls);
    let mut pytorch_calls = bare(pytorch::TITLE);
    pytorch::measure(options, &mut pytorch_calls);
    let mut engines = Table::new(engines::COLUMNS);
    engines::measure(options, &mut engines);
    let mut small = Table::new(onnx_small::COLUMNS);
    onnx_small::measure(options, &mut small);
    isolation::measure(options, &mut isolated)?;
    Ok(vec![
        shim_calls,
        tensorflow_calls,
        trees_calls,
        openvino_calls,
        pytorch_calls,
        engines,
        small,
        isolated,
    ])
}
