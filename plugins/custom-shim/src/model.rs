//! A model version: what its instances share. The library is opened with the first of them.

use crate::backend::{Custom, DEFAULT_FILE};
use crate::config::SequenceFacts;
use crate::generation::{PARAMETER, RequestedGeneration};
use crate::instance::CustomInstance;
use crate::session::DeclaredOutput;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trtserver_model_files::{FilePlaces, ROOTS_SETTING};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Dtype, Error, Model, ModelContext};

/// A tensor's name as a C string.
pub struct Name(CString);

impl Name {
    pub fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr()
    }

    pub fn is(&self, name: &str) -> bool {
        self.0.as_bytes() == name.as_bytes()
    }
}

/// As a C string; the host's texts contain no NUL.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// A declared input.
pub struct DeclaredInput {
    pub name: Name,
    /// Its shape begins with the batch dimension.
    pub batched: bool,
}

pub struct CustomModel {
    pub name: String,
    pub requested: Option<RequestedGeneration>,
    pub default: Option<RequestedGeneration>,
    /// 0 = the model does not batch.
    pub max_batch_size: usize,
    pub config: Vec<u8>,
    pub facts: SequenceFacts,
    /// In the order of the configuration, which is that of the tensors' indices.
    pub inputs: Vec<DeclaredInput>,
    /// The same for outputs, followed by state outputs that are not declared.
    pub outputs: Vec<(Name, DeclaredOutput)>,
    pub server_version: CString,
    pub repository: CString,
    /// The library, and its name for messages.
    path: PathBuf,
    file: String,
}

impl Model for CustomModel {
    type Backend = Custom;
    type Instance = CustomInstance;

    fn open(backend: &Arc<Custom>, context: &ModelContext) -> Result<Self, Error> {
        let name = context.name().to_owned();
        let requested = context.parameter(PARAMETER).map(|value| {
            RequestedGeneration::read(
                value,
                format_args!("parameter '{PARAMETER}' of model '{name}'"),
            )
        });
        let facts = SequenceFacts::read(context.config_pb());
        let batching = context.max_batch_size() > 0;
        let inputs = context.inputs().map(|input| DeclaredInput {
            name: Name(c_text(input.name())),
            batched: batching && !input.shape_tensor(),
        });
        let declared = context.outputs().map(|output| {
            let batched = batching && !output.shape_tensor();
            let dims = output.model_dims().to_vec();
            (output.name(), DeclaredOutput { dtype: output.dtype(), dims, batched })
        });
        let mut outputs: Vec<_> =
            declared.map(|(name, output)| (Name(c_text(name)), output)).collect();
        for (name, kind) in &facts.states {
            if *kind != dtype::INVALID && !outputs.iter().any(|(other, _)| other.is(name)) {
                let dtype = Dtype::from_abi(*kind);
                let output = DeclaredOutput { dtype, dims: vec![-1, -1], batched: batching };
                outputs.push((Name(c_text(name)), output));
            }
        }
        // The model's directory lies in its repository.
        let (file, path) = library_file(context)?;
        let repository = Path::new(context.dir()).parent().unwrap_or(Path::new(""));
        Ok(Self {
            requested: requested.transpose()?,
            default: backend.default,
            max_batch_size: context.max_batch_size(),
            config: context.config_pb().to_vec(),
            facts,
            inputs: inputs.collect(),
            outputs,
            server_version: c_text(&backend.server_version),
            repository: c_text(&repository.to_string_lossy()),
            path,
            file: file.to_owned(),
            name,
        })
    }
}

impl CustomModel {
    /// The library's file.
    pub fn file(&self) -> Result<PathBuf, Error> {
        if self.path.is_file() {
            return Ok(self.path.clone());
        }
        let (file, path) = (&self.file, self.path.display());
        Err(Error::internal(format_args!(
            "unable to find Custom model '{file}' for {}: there is no file {path}",
            self.name
        )))
    }
}

/// Name and path of the library, which lies where files of the model may lie.
fn library_file(context: &ModelContext) -> Result<(&str, PathBuf), Error> {
    let file = if context.file().is_empty() { DEFAULT_FILE } else { context.file() };
    let version_dir = Path::new(context.version_dir());
    let dir = if context.dir().is_empty() { version_dir } else { Path::new(context.dir()) };
    let places = FilePlaces::with_setting(dir, context.setting(ROOTS_SETTING));
    let path = places.resolve(version_dir, file).map_err(|refusal| {
        Error::invalid(format_args!("unable to load model '{}': {refusal}", context.name()))
    })?;
    Ok((file, path))
}
