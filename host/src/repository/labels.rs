//! Label files of a model's outputs: names of the classes in classification results.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trtserver_proto::v2::ModelOutput;

use super::model_config::{ConfigError, stays_inside};

/// Labels by output. Outputs of the same file share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    outputs: BTreeMap<String, Arc<[String]>>,
}

impl Labels {
    /// Reads the files of `outputs`, whose names are relative to the model's directory.
    pub fn load(model_dir: &Path, outputs: &[ModelOutput]) -> Result<Self, ConfigError> {
        let mut files: BTreeMap<&str, Arc<[String]>> = BTreeMap::new();
        let mut labels = Self::default();
        for output in outputs.iter().filter(|output| !output.label_filename.is_empty()) {
            let (name, file) = (&output.name, output.label_filename.as_str());
            if !stays_inside(file) {
                return Err(ConfigError::invalid(format!(
                    "label file '{file}' of output '{name}' leaves the model directory '{}'",
                    model_dir.display()
                )));
            }
            let lines = match files.get(file) {
                Some(lines) => Arc::clone(lines),
                None => {
                    let path = model_dir.join(file);
                    let bytes = std::fs::read(&path).map_err(|e| {
                        let path = path.display();
                        ConfigError::unreadable(format!(
                            "unable to read label file '{path}' of output '{name}': {e}"
                        ))
                    })?;
                    split(&bytes)
                }
            };
            files.insert(file, Arc::clone(&lines));
            labels.outputs.insert(name.clone(), lines);
        }
        Ok(labels)
    }

    /// The label of class `index` of `output`; `None` if the file is shorter or the output has no labels.
    pub fn get(&self, output: &str, index: usize) -> Option<&str> {
        self.outputs.get(output)?.get(index).map(String::as_str)
    }

    /// All labels of `output`, for lookups of many classes.
    pub fn of(&self, output: &str) -> Option<&Arc<[String]>> {
        self.outputs.get(output)
    }

    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }
}

/// One label a line. Empty lines count, and the last line need not end with LF. A CR before the LF is dropped, as in
/// TRTIS 0.12; later releases kept it. Bytes that are not UTF-8 are replaced, because v1 messages carry labels as text.
fn split(bytes: &[u8]) -> Arc<[String]> {
    if bytes.is_empty() {
        return Arc::default();
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = bytes.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
