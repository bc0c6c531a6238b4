//! What lies between a request and its backend: the `custom.h` shim, and the process of an isolated model.

mod apart; // a model in a process of its own beside the same one in the server's
pub mod shim; // a library through the shim beside the bare library

use crate::Result;
use crate::options::Options;
use crate::table::Table;

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let mut shims = Table::new(shim::COLUMNS);
    let mut aparts = Table::new(apart::COLUMNS);
    shim::measure(options, &mut shims)?;
    apart::measure(options, &mut aparts)?;
    Ok(vec![shims, aparts])
}
