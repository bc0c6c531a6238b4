//! What the adapter for Triton's interface adds to a call: the identity backend in this process
//! beside the test plugin.

use super::install;
use crate::Result;
use crate::backends::shim::{InProcessModel, local};
use crate::options::Options;
use crate::repository::empty;
use crate::table::{Table, median, spread, verdict};
use std::fs;

pub const COLUMNS: &[&str] =
    &["adapter", "ns a call", "native plugin", "added ns", "spread", "target", ""];
const ROW: &str = "triton adapter identity 64";
/// Target: nanoseconds that the adapter adds to a call.
const MAX_ADDED_NS: f64 = 3000.0;
const VALUES: usize = 16;

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    if options.wants(ROW) {
        table.measured(ROW.to_owned(), one(options));
    }
    Ok(())
}

fn one(options: &Options) -> Result<Vec<String>> {
    let libraries = install::backends(options)?;
    let folder = empty()?;
    let version = folder.path().join("1");
    fs::create_dir(&version).map_err(|e| format!("{}: {e}", version.display()))?;
    let dirs = [options.dist.join("backends"), options.probe.clone(), libraries.path().to_owned()];
    let backends = local(options, &dirs, "identity")?;
    let mut adapted = InProcessModel::new(&backends, "identity", folder.path(), VALUES)?;
    let mut native = InProcessModel::new(&backends, "probe", folder.path(), VALUES)?;
    let (mut through_adapter, mut through_plugin) = (Vec::new(), Vec::new());
    for _ in 0..3 * options.passes {
        through_adapter.push(adapted.pass(options.pass / 4)?);
        through_plugin.push(native.pass(options.pass / 4)?);
    }
    let added = median(&through_adapter) - median(&through_plugin);
    Ok(vec![
        format!("{:.0}", median(&through_adapter)),
        format!("{:.0}", median(&through_plugin)),
        format!("{added:.0}"),
        format!("{:.0} %", spread(&through_adapter) * 100.0),
        format!("<={MAX_ADDED_NS:.0}"),
        verdict(added <= MAX_ADDED_NS).to_owned(),
    ])
}
