//! Label files of a model's outputs: names of the classes in classification results.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trtserver_model_files::FilePlaces;
use trtserver_proto::v2::ModelOutput;

use super::load_limits::LoadMemory;
use trtserver_model_config::ConfigError;
use trtserver_model_files::stays_inside;
use trtserver_request::class_labels::{ClassLabels, count_lines};

/// Labels by output. Outputs of the same file share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputLabels {
    outputs: BTreeMap<String, Arc<ClassLabels>>,
}

impl OutputLabels {
    /// Reads the files of `outputs`, whose names are relative to the model's directory. `places`
    /// are those of its files.
    ///
    /// # Errors
    /// A file cannot be read, lies elsewhere, or is larger than `memory` allows.
    pub fn load(
        places: &FilePlaces,
        outputs: &[ModelOutput],
        memory: &mut LoadMemory,
    ) -> Result<Self, ConfigError> {
        let mut files: BTreeMap<&str, Arc<ClassLabels>> = BTreeMap::new();
        let mut labels = Self::default();
        let model_dir = places.model_dir();
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
                    let path = places.resolve(model_dir, file).map_err(|refusal| {
                        let text = format!("label file of output '{name}': {refusal}");
                        ConfigError::invalid(text)
                    })?;
                    let bytes = memory.read(&path, "label file").map_err(|e| {
                        e.into_config_error(|e| {
                            let path = path.display();
                            format!("unable to read label file '{path}' of output '{name}': {e}")
                        })
                    })?;
                    Arc::new(read_label_lines(bytes, &path, memory)?)
                }
            };
            files.insert(file, Arc::clone(&lines));
            labels.outputs.insert(name.clone(), lines);
        }
        Ok(labels)
    }

    /// The label of class `index` of `output`; `None` if the file is shorter or the output has no
    /// labels.
    pub fn get(&self, output: &str, index: usize) -> Option<&str> {
        self.outputs.get(output)?.get(index)
    }

    /// All labels of `output`, for lookups of many classes.
    pub fn for_output(&self, output: &str) -> Option<&Arc<ClassLabels>> {
        self.outputs.get(output)
    }

    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }
}

/// The labels in a file. Bytes that are not UTF-8 are replaced, because v1 messages carry labels as
/// text.
fn read_label_lines(
    bytes: Vec<u8>,
    path: &Path,
    memory: &mut LoadMemory,
) -> Result<ClassLabels, ConfigError> {
    let what = || format!("label file '{}'", path.display());
    memory.take(count_lines(&bytes) as u64 * 4, || format!("the line index of {}", what()))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            // Each replaced byte becomes three.
            memory.take(e.as_bytes().len() as u64 * 3, || format!("the text of {}", what()))?;
            String::from_utf8_lossy(e.as_bytes()).into_owned()
        }
    };
    ClassLabels::from_lines(text)
        .ok_or_else(|| ConfigError::invalid(format!("{} does not fit into memory", what())))
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
