//! The repositories on local disk when they are opened: which of them are bare, and what is wrong
//! with their layout.

use super::{BareSettings, LocalStore, ModelStore};
use crate::bare::BareStore;
use crate::bare_layout::{BareEntry, RootLayout, list_files, read_layout};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_base::disk::access_advice;
use trtserver_base::error::{Error, Result};

/// What the repositories on local disk look like. Whether one is bare is decided once.
#[derive(Default)]
pub struct LocalRoots {
    layouts: BTreeMap<PathBuf, RootLayout>,
}

impl LocalRoots {
    /// # Errors
    /// `root` is not a directory.
    pub fn add(&mut self, root: &Path, settings: &BareSettings) -> Result<()> {
        let reason = match std::fs::metadata(root) {
            Ok(found) if found.is_dir() => None,
            Ok(_) => Some("it is a file".to_owned()),
            Err(e) => Some(format!("{e}{}", access_advice(root, &e))),
        };
        if let Some(reason) = reason {
            return Err(Error::invalid(format!(
                "model repository '{}' is not a readable directory: {reason}",
                root.display()
            )));
        }
        self.layouts.insert(root.to_owned(), read_layout(root, &settings.files));
        Ok(())
    }

    fn bare(&self) -> impl Iterator<Item = (&Path, &BareEntry)> {
        self.layouts.iter().filter_map(|(root, layout)| match layout {
            RootLayout::Bare(entry) => Some((root.as_path(), entry)),
            RootLayout::Models { .. } => None,
        })
    }

    /// # Errors
    /// `--model-name` is given, and names no model or more than one.
    pub fn expect_named(&self, settings: &BareSettings) -> Result<()> {
        let found: Vec<String> =
            self.bare().map(|(root, _)| format!("'{}'", root.display())).collect();
        let Some(name) = settings.name.as_ref().filter(|_| found.len() != 1) else { return Ok(()) };
        let why = match found.is_empty() {
            false => format!(
                "these repositories hold the files of one model each: {}; without the flag each has the name of its \
                 directory",
                found.join(", ")
            ),
            true => format!(
                "no repository holds the files of one model itself, which are named {}; models in model directories \
                 have the names of those",
                list_files(&settings.files)
            ),
        };
        Err(Error::invalid(format!("--model-name={name} names no model: {why}")))
    }

    /// The repository `root`, which was added.
    ///
    /// # Errors
    /// Nothing names the model of a bare repository.
    pub fn open(&self, root: &Path, settings: &BareSettings) -> Result<Arc<dyn ModelStore>> {
        let entry = match self.layouts.get(root) {
            Some(RootLayout::Bare(entry)) => entry,
            Some(RootLayout::Models { warning }) => {
                if let Some(warning) = warning {
                    tracing::warn!("{warning}");
                }
                return Ok(Arc::new(LocalStore::new(root, warning.clone())));
            }
            None => return Ok(Arc::new(LocalStore::new(root, None))),
        };
        let name = settings.model_name(root, self.bare().count() == 1)?;
        tracing::info!(
            "model repository '{}' holds the files of one model ('{}'), which is served as version 1 of '{name}'",
            root.display(),
            entry.name()
        );
        Ok(Arc::new(BareStore::open(root, name, &settings.files)?))
    }
}
