//! Overhead between request and backend: the `custom.h` shim, the plugins of TensorFlow and of
//! decision trees, and isolation.

mod isolation; // an isolated model compared with the same local one
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
    let mut trees_calls = Table::new(trees::COLUMNS);
    trees::measure(options, &mut trees_calls);
    isolation::measure(options, &mut isolated)?;
    Ok(vec![shim_calls, tensorflow_calls, trees_calls, isolated])
}
