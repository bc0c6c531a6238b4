//! The two files of a model: where they are, and what is wrong with them.

use crate::netdef::{self, NetDef};
use std::path::{Path, PathBuf};
use trtserver_framework::fault::PluginFault;

/// Name of the predict net when the configuration gives none.
pub const DEFAULT_FILE: &str = "model.netdef";

/// A protobuf message has less than 2 GiB.
const MAX_BYTES: u64 = (2 << 30) - 1;

#[derive(Debug)]
pub struct NetFiles {
    pub init: PathBuf,
    pub predict: PathBuf,
}

impl NetFiles {
    /// The files of a version. `name` is the predict net's; the initialization net is beside it,
    /// with `init_` before its name. `place` finds the path of a name.
    ///
    /// # Errors
    /// One of them does not exist, or lies elsewhere.
    pub fn find(
        model: &str,
        name: &str,
        place: impl Fn(&str) -> Result<PathBuf, PluginFault>,
    ) -> Result<Self, PluginFault> {
        let name = if name.is_empty() { DEFAULT_FILE } else { name };
        let predict = place(name)?;
        let init_name = match name.rsplit_once('/') {
            Some((dir, file)) => format!("{dir}/init_{file}"),
            None => format!("init_{name}"),
        };
        let init = place(&init_name)?;
        let missing = |what: &str, name: &str, path: &Path| {
            PluginFault::internal(format!(
                "unable to find NetDef {what} '{name}' for {model}: there is no file {}",
                path.display()
            ))
        };
        if !predict.is_file() {
            return Err(missing("model", name, &predict));
        }
        if !init.is_file() {
            return Err(missing("initialization model", &init_name, &init));
        }
        Ok(Self { init, predict })
    }

    /// Both nets: the initialization net and the predict net.
    ///
    /// # Errors
    /// A file cannot be read, or is not a net. Names it.
    pub fn read(&self, model: &str) -> Result<(NetDef, NetDef), PluginFault> {
        Ok((read_file(model, &self.init)?, read_file(model, &self.predict)?))
    }
}

fn read_file(model: &str, path: &Path) -> Result<NetDef, PluginFault> {
    let place = || format!("unable to load model '{model}' from {}", path.display());
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    if bytes > MAX_BYTES {
        return Err(PluginFault::invalid(format!(
            "{}: it has {bytes} bytes, a NetDef at most {MAX_BYTES}",
            place()
        )));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| PluginFault::internal(format!("{}: {error}", place())))?;
    netdef::read_net(&bytes).map_err(|text| PluginFault::invalid(format!("{}: {text}", place())))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
