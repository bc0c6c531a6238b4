//! SavedModel: `saved_model.pb`, its graphs by tags, and the signature that is served.
//!
//! The signature is `serving_default`, or the only one, or the one that the parameter
//! `TF_SIGNATURE_DEF` names. The graph is the one tagged `serve`, or as the parameter
//! `TF_GRAPH_TAG` says (several tags separated by commas).

use crate::function_library;
use crate::graph_def::tensor_name;
use crate::proto::{self, MalformedProto, read_entry, read_fields, read_text};
use crate::signature::{GraphTensor, Signature};
use std::collections::BTreeMap;
use std::path::Path;
use trtserver_framework::fault::PluginFault;
use trtserver_proto_wire::WireValue;

pub const TAG_PARAMETER: &str = "TF_GRAPH_TAG";
pub const SIGNATURE_PARAMETER: &str = "TF_SIGNATURE_DEF";
const DEFAULT_TAG: &str = "serve";
const DEFAULT_SIGNATURE: &str = "serving_default";
/// Signatures of operations that a loader runs. They are not served.
const LOADER_SIGNATURES: [&str; 2] = ["__saved_model_init_op", "__saved_model_train_op"];

/// Names the values of all variables.
const VARIABLES: &str = "variables/variables.index";
const VARIABLE_KINDS: [&str; 3] = ["VarHandleOp", "VariableV2", "Variable"];

const BINARY: &str = "saved_model.pb";
/// What TensorFlow accepts in place of `saved_model.pb`: text, and files beyond 2 GiB in chunks.
const OTHER_FORMS: [&str; 2] = ["saved_model.pbtxt", "saved_model.cpb"];

/// Which graph and which signature of a SavedModel is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureSelection {
    pub tags: Vec<String>,
    pub signature: Option<String>,
}

impl SignatureSelection {
    /// From a model's parameters.
    pub fn new<'a>(params: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut selection = Self { tags: vec![DEFAULT_TAG.to_owned()], signature: None };
        for (key, value) in params.filter(|(_, value)| !value.trim().is_empty()) {
            match key {
                TAG_PARAMETER => {
                    selection.tags = value.split(',').map(|tag| tag.trim().to_owned()).collect();
                }
                SIGNATURE_PARAMETER => selection.signature = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        selection
    }
}

/// A signature and the name that the file has for it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedSignature {
    pub name: String,
    pub signature: Signature,
    /// The graph has variables that are restored from files.
    has_variables: bool,
}

/// Whether a directory is a SavedModel.
pub fn is_saved_model(dir: &Path) -> bool {
    std::iter::once(BINARY).chain(OTHER_FORMS).any(|name| dir.join(name).is_file())
}

/// The signature that the file in `dir` has for `selection`. `None` if the file has a form that
/// TensorFlow alone can read: the signature is then taken from the graph that it loads, by
/// [`read_meta_graph`].
pub fn read_saved_model_dir(
    dir: &Path,
    selection: &SignatureSelection,
    model: &str,
) -> Result<Option<NamedSignature>, PluginFault> {
    let file = dir.join(BINARY);
    if !file.is_file() {
        if is_saved_model(dir) {
            return Ok(None);
        }
        return Err(PluginFault::internal(format!(
            "unable to find model '{}' for {model}: there is no file {}",
            dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy(),
            file.display()
        )));
    }
    let named = read_saved_model(&read_file(model, &file)?, selection, model, &file)?;
    let variables = dir.join(VARIABLES);
    if named.has_variables && !variables.is_file() {
        // TensorFlow takes it for a model without variables, and each request would fail.
        return Err(PluginFault::invalid(format!(
            "unable to load model '{model}' from {}: the graph has variables, but there is no file {}",
            file.display(),
            variables.display()
        )));
    }
    Ok(Some(named))
}

/// As [`read_saved_model_dir`], of the contents of `saved_model.pb`.
pub fn read_saved_model(
    bytes: &[u8],
    selection: &SignatureSelection,
    model: &str,
    file: &Path,
) -> Result<NamedSignature, PluginFault> {
    let place = ModelLocation { model, file };
    let graphs = meta_graphs(bytes).map_err(|why| place.malformed(&why))?;
    let graph = graphs.iter().find(|graph| graph.has_tags(&selection.tags)).ok_or_else(|| {
        let all: Vec<String> = graphs.iter().map(|graph| graph.tags.join(",")).collect();
        PluginFault::invalid(format!(
            "unable to load model '{model}', expected '{}' tag; {} has {}; the parameter \
             {TAG_PARAMETER} names another",
            selection.tags.join(","),
            file.display(),
            match all.is_empty() {
                true => "no graph".to_owned(),
                false => format!("graphs with the tags '{}'", all.join("', '")),
            }
        ))
    })?;
    function_library::check_functions(graph.graph).map_err(|why| place.invalid(&why))?;
    graph.signature(selection, &place)
}

/// The signature for `selection` in an encoded `MetaGraphDef`, as TensorFlow returns it for the
/// loaded graph of `dir`.
pub fn read_meta_graph(
    bytes: &[u8],
    selection: &SignatureSelection,
    model: &str,
    dir: &Path,
) -> Result<NamedSignature, PluginFault> {
    let place = ModelLocation { model, file: dir };
    let graph = MetaGraph::read(bytes).map_err(|why| place.malformed(&why))?;
    graph.signature(selection, &place)
}

/// A model file within protobuf's limit.
pub fn read_file(model: &str, file: &Path) -> Result<Vec<u8>, PluginFault> {
    let place = |e: std::io::Error| {
        PluginFault::internal(format!(
            "unable to load model '{model}': cannot read {}: {e}",
            file.display()
        ))
    };
    let size = file.metadata().map_err(place)?.len();
    if size > proto::MAX_BYTES {
        return Err(PluginFault::invalid(format!(
            "unable to load model '{model}': {} has {size} bytes, the limit of a protobuf file is {}",
            file.display(),
            proto::MAX_BYTES
        )));
    }
    std::fs::read(file).map_err(place)
}

/// Model and file, for errors.
struct ModelLocation<'a> {
    model: &'a str,
    file: &'a Path,
}

impl ModelLocation<'_> {
    fn malformed(&self, why: &MalformedProto) -> PluginFault {
        self.invalid(&format_args!("not a SavedModel: {why}"))
    }

    fn invalid(&self, why: &dyn std::fmt::Display) -> PluginFault {
        let (model, file) = (self.model, self.file.display());
        PluginFault::invalid(format!("unable to load model '{model}' from {file}: {why}"))
    }
}

#[derive(Debug, Default)]
struct MetaGraph<'a> {
    tags: Vec<&'a str>,
    /// Encoded `SignatureDef`s.
    signatures: BTreeMap<&'a str, &'a [u8]>,
    /// Encoded `GraphDef`.
    graph: &'a [u8],
    /// Name of the operation that restores variables; empty if there is none.
    restore: &'a str,
}

fn meta_graphs(saved_model: &[u8]) -> Result<Vec<MetaGraph<'_>>, MalformedProto> {
    let mut graphs = Vec::new();
    for field in read_fields(saved_model) {
        if let (2, WireValue::Bytes(graph)) = field? {
            graphs.push(MetaGraph::read(graph)?);
        }
    }
    Ok(graphs)
}

impl<'a> MetaGraph<'a> {
    fn read(message: &'a [u8]) -> Result<Self, MalformedProto> {
        let mut graph = Self::default();
        for field in read_fields(message) {
            match field? {
                (1, WireValue::Bytes(info)) => graph.read_info(info)?,
                (2, WireValue::Bytes(bytes)) => graph.graph = bytes,
                (3, WireValue::Bytes(saver)) => graph.read_saver(saver)?,
                (5, WireValue::Bytes(bytes)) => {
                    let (name, signature) = read_entry(bytes, "name of a signature")?;
                    graph.signatures.insert(name, signature);
                }
                _ => {}
            }
        }
        Ok(graph)
    }

    fn read_info(&mut self, info: &'a [u8]) -> Result<(), MalformedProto> {
        for field in read_fields(info) {
            if let (4, WireValue::Bytes(tag)) = field? {
                self.tags.push(read_text(tag, "tag")?);
            }
        }
        Ok(())
    }

    fn read_saver(&mut self, saver: &'a [u8]) -> Result<(), MalformedProto> {
        for field in read_fields(saver) {
            if let (3, WireValue::Bytes(name)) = field? {
                self.restore = read_text(name, "name of an operation")?;
            }
        }
        Ok(())
    }

    fn has_variables(&self) -> Result<bool, MalformedProto> {
        let mut found = false;
        for field in read_fields(self.graph) {
            let (1, WireValue::Bytes(node)) = field? else { continue };
            for field in read_fields(node) {
                if let (2, WireValue::Bytes(kind)) = field? {
                    found |= VARIABLE_KINDS.iter().any(|variable| variable.as_bytes() == kind);
                }
            }
        }
        Ok(found && !self.restore.is_empty())
    }

    /// TensorFlow loads the graph whose tags are exactly the requested ones.
    fn has_tags(&self, tags: &[String]) -> bool {
        self.tags.iter().all(|tag| tags.iter().any(|other| other == tag))
            && tags.iter().all(|tag| self.tags.contains(&tag.as_str()))
    }

    fn signature(
        &self,
        selection: &SignatureSelection,
        place: &ModelLocation,
    ) -> Result<NamedSignature, PluginFault> {
        let name = self.choose(selection, place)?;
        let message = self.signatures.get(name).copied().unwrap_or_default();
        let signature = signature(message).map_err(|why| place.malformed(&why))?;
        let has_variables = self.has_variables().map_err(|why| place.malformed(&why))?;
        Ok(NamedSignature { name: name.to_owned(), signature, has_variables })
    }

    fn choose(
        &self,
        selection: &SignatureSelection,
        place: &ModelLocation,
    ) -> Result<&'a str, PluginFault> {
        let served: Vec<&str> = self
            .signatures
            .keys()
            .copied()
            .filter(|name| !LOADER_SIGNATURES.contains(name))
            .collect();
        let requested = selection.signature.as_deref();
        let found = served.iter().find(|name| **name == requested.unwrap_or(DEFAULT_SIGNATURE));
        match (found, requested, &served[..]) {
            (Some(name), _, _) | (None, None, [name]) => Ok(name),
            _ => Err(PluginFault::invalid(format!(
                "unable to load model '{}', expected '{}' signature; {} has {}",
                place.model,
                requested.unwrap_or(DEFAULT_SIGNATURE),
                place.file.display(),
                match served.is_empty() {
                    true => "no signature".to_owned(),
                    false => format!(
                        "the signatures '{}'; the parameter {SIGNATURE_PARAMETER} names the one to serve",
                        served.join("', '")
                    ),
                }
            ))),
        }
    }
}

fn signature(message: &[u8]) -> Result<Signature, MalformedProto> {
    let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
    let mut method = "";
    for field in read_fields(message) {
        match field? {
            (1, WireValue::Bytes(bytes)) => {
                inputs.extend([read_entry(bytes, "name of an input")?]);
            }
            (2, WireValue::Bytes(bytes)) => {
                outputs.extend([read_entry(bytes, "name of an output")?]);
            }
            (3, WireValue::Bytes(bytes)) => method = read_text(bytes, "name of a method")?,
            _ => {}
        }
    }
    let tensors = |of: BTreeMap<&str, &[u8]>| -> Result<Vec<GraphTensor>, MalformedProto> {
        of.into_iter().map(|(name, message)| tensor(name, message)).collect()
    };
    Ok(Signature {
        inputs: tensors(inputs)?,
        outputs: tensors(outputs)?,
        method: method.to_owned(),
    })
}

/// A `TensorInfo`. A sparse or composite tensor has no operation.
fn tensor(name: &str, message: &[u8]) -> Result<GraphTensor, MalformedProto> {
    let (mut graph_name, mut dims) = ("", None);
    for field in read_fields(message) {
        match field? {
            (1, WireValue::Bytes(bytes)) => graph_name = read_text(bytes, "name of a tensor")?,
            (3, WireValue::Bytes(bytes)) => dims = proto::read_shape(bytes)?,
            // Fields 4 and 5 are the alternatives to a dense tensor; the last field counts.
            (4 | 5, _) => graph_name = "",
            _ => {}
        }
    }
    let (operation, index) = tensor_name(graph_name);
    Ok(GraphTensor {
        name: name.to_owned(),
        operation: operation.to_owned(),
        index,
        data_type: proto::last_number(message, 2)?,
        dims,
    })
}

#[cfg(test)]
#[path = "saved_model_tests.rs"]
mod tests;
