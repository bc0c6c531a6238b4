//! Translates a pair of nets into an ONNX model. No files and no ONNX Runtime: a function of its
//! arguments.
//!
//! ```text
//! mod.rs ─── operator.rs        one operator of a net
//!    │   └── operators/         what each becomes, a file per family
//! graph.rs ── tensor.rs         the ONNX graph and its constants
//! ```

mod graph;
mod operator;
pub mod operators;
pub mod tensor;

pub use graph::NetInput;

use crate::netdef::{NetDef, OperatorDef};
use crate::onnx::ModelProto;
use graph::{GraphBuilder, GraphValue};
use operator::Operator;
use std::collections::{HashMap, HashSet};

/// An ONNX model is one protobuf message, and so has less than 2 GiB.
pub const MAX_BYTES: usize = (2 << 30) - (1 << 20);

/// Which of the two nets an error is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetPart {
    Init,
    Predict,
}

#[derive(Debug)]
pub struct TranslationRefusal {
    pub net: NetPart,
    pub text: String,
}

/// The predict net's `external_input`.
#[derive(Debug, Default)]
pub struct NetInputs {
    /// An operator reads them, and the initialization net does not write them.
    pub required: Vec<String>,
    /// The others. A request may replace what the initialization net writes.
    pub optional: Vec<String>,
}

impl NetInputs {
    /// `outputs` are those of the model.
    pub fn from_nets(init: &NetDef, predict: &NetDef, outputs: &NetOutputs) -> Self {
        let written: HashSet<&String> = init.op.iter().flat_map(|op| &op.output).collect();
        let mut read: HashSet<&String> = predict.op.iter().flat_map(|op| &op.input).collect();
        read.extend(&outputs.names);
        let (required, optional) = predict
            .external_input
            .iter()
            .cloned()
            .partition(|name| read.contains(name) && !written.contains(name));
        Self { required, optional }
    }
}

/// The blobs that are outputs of the model.
#[derive(Debug, Clone)]
pub struct NetOutputs {
    pub names: Vec<String>,
    source: OutputSource,
}

/// What names the outputs. Old exporters write no `external_output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputSource {
    ExternalOutput,
    Configuration,
    LastOperator,
}

impl NetOutputs {
    /// The predict net's `external_output`; if it lists none, the `configured` outputs, else those
    /// of its last operator. `of_host` are outputs that the host adds.
    pub fn from_net(predict: &NetDef, configured: &[String], of_host: &[String]) -> Self {
        let last = predict.op.last().map_or(&[][..], |op| &op.output);
        let (names, source) = match (predict.external_output.as_slice(), configured) {
            ([], []) => (last, OutputSource::LastOperator),
            ([], configured) => (configured, OutputSource::Configuration),
            (listed, _) => {
                let names = listed.to_vec();
                return Self { names, source: OutputSource::ExternalOutput };
            }
        };
        Self { names: [names, of_host].concat(), source }
    }
}

impl OutputSource {
    /// An output of this name, for messages.
    fn label(self, name: &str) -> String {
        match self {
            Self::ExternalOutput => format!("external_output '{name}'"),
            Self::Configuration => {
                format!(
                    "output '{name}' of the model configuration (the net lists no external_output)"
                )
            }
            Self::LastOperator => {
                format!("output '{name}' of the last operator (the net lists no external_output)")
            }
        }
    }
}

/// A blob: the value that the last operator wrote, or why there is none.
enum BlobState {
    GraphValue(GraphValue),
    /// An output that the operator writes during training only.
    NotComputed {
        operator: String,
    },
}

/// Translates the nets. `inputs` become the inputs of the model and replace blobs of the
/// initialization net, `outputs` its outputs.
///
/// # Errors
/// The nets do not fit together, or use what is not supported: names the operator and its output.
pub fn translate_nets(
    init: NetDef,
    predict: NetDef,
    inputs: &[NetInput],
    outputs: &NetOutputs,
    max_bytes: usize,
) -> Result<ModelProto, TranslationRefusal> {
    let at = |net| move |text| TranslationRefusal { net, text };
    let mut translation = Translation::default();
    translation
        .run(init, "a blob that the initialization net does not write")
        .map_err(at(NetPart::Init))?;
    for input in inputs {
        let value = translation.graph.input(input.clone());
        translation.blobs.insert(input.name.clone(), BlobState::GraphValue(value));
    }
    let absent = "which no operator before it writes and which is not an input";
    translation.run(predict, absent).map_err(at(NetPart::Predict))?;
    let outputs = translation.outputs(outputs, inputs).map_err(at(NetPart::Predict))?;
    translation.graph.finish(&outputs, max_bytes).map_err(|bytes| {
        let found =
            bytes.map_or_else(|| "more than can be addressed".to_owned(), |n| n.to_string());
        let text = format!("the weights have {found} bytes, the limit is {max_bytes}");
        TranslationRefusal { net: NetPart::Init, text }
    })
}

#[derive(Default)]
struct Translation {
    graph: GraphBuilder,
    blobs: HashMap<String, BlobState>,
}

impl Translation {
    fn run(&mut self, net: NetDef, absent: &str) -> Result<(), String> {
        for (nth, mut def) in net.op.into_iter().enumerate() {
            let place = place(&def, nth);
            self.one(&mut def, &place, absent).map_err(|text| format!("{place}: {text}"))?;
        }
        Ok(())
    }

    fn one(&mut self, def: &mut OperatorDef, place: &str, absent: &str) -> Result<(), String> {
        let translate = operators::find(def.r#type())?;
        let inputs =
            def.input.iter().map(|name| self.read(name, absent)).collect::<Result<_, _>>()?;
        self.graph.blob = def.output.first().cloned().unwrap_or_default();
        let names = def.output.clone();
        let values = translate(&mut self.graph, &mut Operator { def, inputs })?;
        let mut values = values.into_iter();
        for name in names {
            let blob = match values.next() {
                Some(value) => BlobState::GraphValue(value),
                None => BlobState::NotComputed { operator: place.to_owned() },
            };
            self.blobs.insert(name, blob);
        }
        Ok(())
    }

    fn read(&self, name: &str, absent: &str) -> Result<GraphValue, String> {
        match self.blobs.get(name) {
            Some(BlobState::GraphValue(value)) => Ok(*value),
            Some(BlobState::NotComputed { operator }) => Err(format!(
                "it reads blob '{name}', an output of {operator} that is not computed when a model is served"
            )),
            None => Err(format!("it reads blob '{name}', {absent}")),
        }
    }

    /// The values of the net's outputs.
    fn outputs(
        &self,
        NetOutputs { names, source }: &NetOutputs,
        inputs: &[NetInput],
    ) -> Result<Vec<(String, GraphValue)>, String> {
        if names.is_empty() {
            return Err(
                "the net lists no external_output, and its last operator has no output".to_owned()
            );
        }
        let mut outputs: Vec<(String, GraphValue)> = Vec::new();
        for name in names {
            if outputs.iter().any(|(other, _)| other == name) {
                continue;
            }
            let value = match self.blobs.get(name) {
                Some(BlobState::GraphValue(value)) => *value,
                // Nobody asked for it.
                Some(BlobState::NotComputed { .. }) if *source == OutputSource::LastOperator => {
                    continue;
                }
                Some(BlobState::NotComputed { operator }) => {
                    let output = source.label(name);
                    return Err(format!(
                        "{output} is an output of {operator} that is not computed when a model is served"
                    ));
                }
                None => return Err(format!("no operator writes {}", source.label(name))),
            };
            let overwritten =
                inputs.iter().any(|input| input.name == *name) && !self.graph.is_input(value, name);
            if overwritten {
                return Err(format!(
                    "blob '{name}' is an input that the net overwrites and an output, so the name has two meanings"
                ));
            }
            outputs.push((name.clone(), value));
        }
        Ok(outputs)
    }
}

/// `operator 'Conv' (number 3, output 'conv1')`, counted from 0.
fn place(def: &OperatorDef, nth: usize) -> String {
    let output = def.output.first().map_or("", |name| name);
    format!("operator '{}' (number {nth}, output '{output}')", def.r#type())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
