//! Overhead between request and backend: the `custom.h` shim, and isolation.

mod isolation; // an isolated model compared with the same local one
pub mod shim; // a library behind the shim compared with direct calls

use crate::Result;
use crate::options::Options;
use crate::table::Table;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let mut shim_calls = Table::new(shim::COLUMNS);
    let mut isolated = Table::new(isolation::COLUMNS);
    shim::measure(options, &mut shim_calls)?;
    isolation::measure(options, &mut isolated)?;
    Ok(vec![shim_calls, isolated])
}
