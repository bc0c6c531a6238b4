//! The file of a version: which it is, and what it is if the library cannot read it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::file_contents::{explain_contents, explain_foreign};
use trtserver_framework::model_files;
use trtserver_plugin_api::author::ModelContext;

/// Name of a model's file when its configuration gives none.
pub const DEFAULT_FILE: &str = "model.xml";

/// Further names, which a model has that is not in OpenVINO's own format: best first.
const OTHER_FILES: [&str; 9] = [
    "model.onnx",
    "model.tflite",
    "model.pdmodel",
    "model.savedmodel",
    "model.saved_model",
    "saved_model.pb",
    "model.pb",
    "model.graphdef",
    "model.json",
];

/// A directory of a SavedModel has this file.
const SAVED_MODEL: &str = "saved_model.pb";

/// The file or directory that the library is given.
#[derive(Debug)]
pub struct ModelFile {
    pub path: PathBuf,
    /// For OpenVINO's own format: the weights, which may be absent.
    weights: Option<PathBuf>,
}

impl ModelFile {
    /// # Errors
    /// There is no such file: names the model and the names that are looked for.
    pub fn find(context: &ModelContext) -> Result<Self, PluginFault> {
        let exists = |name: &str| Path::new(context.version_dir()).join(name).exists();
        let name = choose_name(context.file(), exists);
        let path = model_files::in_version_dir(context, name)?;
        if !path.exists() {
            let others = OTHER_FILES.join("', '");
            return Err(PluginFault::invalid(format!(
                "unable to load model '{}': there is no file {}; expected '{DEFAULT_FILE}', '{others}', or the one that \
                 default_model_filename names",
                context.name(),
                path.display()
            )));
        }
        // The library reads a SavedModel as a directory.
        let path = match (path.file_name(), path.parent()) {
            (Some(name), Some(dir)) if name == SAVED_MODEL => dir.to_path_buf(),
            _ => path,
        };
        if path.is_dir() {
            let places = model_files::file_places(context);
            places
                .judge_tree(&path)
                .map_err(|refusal| model_files::file_refused(context.name(), &refusal))?;
        }
        let weights = has_extension(&path, "xml").then(|| path.with_extension("bin"));
        if let Some(name) =
            weights.as_deref().and_then(|path| path.strip_prefix(context.version_dir()).ok())
        {
            // Where its links lead.
            model_files::in_version_dir(context, &name.display().to_string())?;
        }
        Ok(Self { path, weights })
    }

    /// Puts before the library's text what the file is, if its contents tell.
    pub fn explain(&self, fault: PluginFault) -> PluginFault {
        match self.look_inside() {
            Some(what) => fault.within(what),
            None => fault,
        }
    }

    fn look_inside(&self) -> Option<String> {
        if self.path.is_dir() {
            let model = self.path.join(SAVED_MODEL);
            return match model.is_file() {
                true => explain_contents(&model),
                false => Some(format!("the directory has no file {SAVED_MODEL}")),
            };
        }
        let mut head = Vec::new();
        File::open(&self.path).ok()?.take(512).read_to_end(&mut head).ok()?;
        if let Some(weights) = &self.weights {
            return explain_ir(&head, weights);
        }
        match has_extension(&self.path, "tflite") {
            true => explain_tflite(&head),
            false => explain_contents(&self.path),
        }
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

/// The host completes the default name; a model of another format counts as if none was given.
fn choose_name(configured: &str, exists: impl Fn(&str) -> bool) -> &str {
    match configured {
        "" | DEFAULT_FILE if !exists(DEFAULT_FILE) => {
            OTHER_FILES.into_iter().find(|name| exists(name)).unwrap_or(DEFAULT_FILE)
        }
        "" => DEFAULT_FILE,
        own => own,
    }
}

/// What a file is that should be a model in OpenVINO's own format.
fn explain_ir(head: &[u8], weights: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') && text.contains("<net") {
        let file = weights.display();
        return (!weights.is_file())
            .then(|| format!("the weights are missing: there is no file {file}"));
    }
    let foreign = explain_foreign(head);
    Some(
        foreign
            .unwrap_or("the file is not a model in OpenVINO's format (XML that begins with <net>)")
            .to_owned(),
    )
}

fn explain_tflite(head: &[u8]) -> Option<String> {
    if head.get(4..8) == Some(b"TFL3") {
        return None;
    }
    let foreign = explain_foreign(head);
    Some(
        foreign
            .unwrap_or("the file is not a TensorFlow Lite model (its identifier TFL3 is missing)")
            .to_owned(),
    )
}

#[cfg(test)]
#[path = "model_file_tests.rs"]
mod tests;
