//! A model's file or directory: where it is, what can be read from it, and how TensorFlow opens it.

use crate::graph_def::GraphDefView;
use crate::init_ops;
use crate::runtime::TensorFlowRuntime;
use crate::saved_model::{self, SignatureSelection};
use crate::session::{self, GraphSession};
use crate::signature::Signature;
use std::path::{Path, PathBuf};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_plugin_api::author::ModelContext;

/// What sessions are opened from.
pub enum ModelSource {
    /// The file's bytes, and the operations that each new session runs.
    GraphDef {
        graph: Vec<u8>,
        init_ops: Vec<String>,
    },
    SavedModel {
        dir: PathBuf,
        tags: Vec<String>,
    },
}

impl ModelSource {
    /// The session, and the encoded `MetaGraphDef` of a SavedModel.
    pub fn open(
        &self,
        runtime: &'static TensorFlowRuntime,
        config: &session::Config,
    ) -> Result<(GraphSession, Vec<u8>), PluginFault> {
        match self {
            ModelSource::GraphDef { graph, init_ops } => {
                let session = GraphSession::from_graph_def(runtime, graph, config)?;
                session.run_operations(init_ops)?;
                Ok((session, Vec::new()))
            }
            ModelSource::SavedModel { dir, tags } => {
                GraphSession::from_saved_model(runtime, dir, tags, config)
            }
        }
    }
}

/// A model's file or directory.
pub struct ModelFile {
    pub path: PathBuf,
    pub is_saved_model: bool,
    init_ops: Vec<String>,
}

/// What was read from it without TensorFlow.
pub struct FileContents {
    pub source: ModelSource,
    /// `None`: TensorFlow alone can read the file.
    pub signature: Option<Signature>,
}

impl ModelFile {
    pub fn from_context(context: &ModelContext, config: &Config) -> Result<Self, PluginFault> {
        let is_saved_model = config.facts.platform == crate::SAVED_MODEL;
        let name = match (context.file(), is_saved_model) {
            ("", true) => crate::DEFAULT_DIRECTORY,
            ("", false) => crate::DEFAULT_FILE,
            (name, _) => name,
        };
        let path = model_files::in_version_dir(context, name)?;
        if path.is_dir() {
            let whole = model_files::file_places(context).judge_tree(&path);
            whole.map_err(|refusal| model_files::file_refused(context.name(), &refusal))?;
        }
        let found = if is_saved_model { path.is_dir() } else { path.is_file() };
        if found {
            let init_ops = init_ops::read_init_ops(context, is_saved_model)?;
            return Ok(Self { path, is_saved_model, init_ops });
        }
        let (model, path) = (&config.model, path.display());
        let kind = if is_saved_model { "directory" } else { "file" };
        Err(PluginFault::internal(format!(
            "unable to find model '{name}' for {model}: there is no {kind} {path}"
        )))
    }

    /// `named` finds the tensors of a GraphDef: [`crate::graph_names::configured_signature`] or
    /// [`crate::graph_names::to_complete`].
    pub fn read(
        &self,
        config: &Config,
        selection: &SignatureSelection,
        named: fn(&GraphDefView, &Config, &Path) -> Result<Signature, PluginFault>,
    ) -> Result<FileContents, PluginFault> {
        if self.is_saved_model {
            let named = saved_model::read_saved_model_dir(&self.path, selection, &config.model)?;
            let (dir, tags) = (self.path.clone(), selection.tags.clone());
            let source = ModelSource::SavedModel { dir, tags };
            return Ok(FileContents { source, signature: named.map(|named| named.signature) });
        }
        let bytes = saved_model::read_file(&config.model, &self.path)?;
        let graph = GraphDefView::read(&bytes).map_err(|why| {
            let (model, path) = (&config.model, self.path.display());
            PluginFault::invalid(format!("unable to load model '{model}' from {path}: {why}"))
        })?;
        let signature = named(&graph, config, &self.path)?;
        let source = ModelSource::GraphDef { graph: bytes, init_ops: self.init_ops.clone() };
        Ok(FileContents { source, signature: Some(signature) })
    }
}
