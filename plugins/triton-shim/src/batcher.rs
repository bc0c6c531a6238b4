//! Libraries that select the requests of a batch (`TRITONBACKEND_ModelBatch…`): not run, and a model that asks for one is refused,
//! since it may rely on smaller batches than the server's batcher makes.

use crate::fault::{Fault, Result};
use std::path::Path;

/// The parameter with the path of such a library.
const PARAMETER: &str = "TRITON_BATCH_STRATEGY_PATH";
/// Its name in the directory of a version, model or backend.
const FILE: &str = "batchstrategy.so";

/// # Errors
/// The configuration (JSON) or one of the directories has such a library.
pub fn refuse(config: &str, dirs: &[&Path]) -> Result<()> {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    let refused = |what: &str| {
        Err(Fault::unsupported(format_args!(
            "{what} names a custom batching strategy, and the server runs none: remove it to use the server's dynamic batcher"
        )))
    };
    if config["parameters"].get(PARAMETER).is_some() {
        return refused(&format!("the parameter '{PARAMETER}'"));
    }
    match dirs.iter().map(|dir| dir.join(FILE)).find(|file| file.exists()) {
        Some(file) => refused(&format!("'{}'", file.display())),
        None => Ok(()),
    }
}
