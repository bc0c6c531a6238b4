//! A session with the tensors of a plan looked up in its graph.

use crate::api::TfOutput;
use crate::plan::{TensorPlan, TensorSlot};
use crate::session::GraphSession;
use crate::signature::{GraphTensor, Signature};
use std::path::Path;
use trtserver_framework::fault::PluginFault;

/// A session and the plan's tensors in its graph.
pub struct GraphNetwork {
    pub session: GraphSession,
    pub inputs: Vec<TfOutput>,
    pub outputs: Vec<TfOutput>,
}

// SAFETY: operations are constant parts of the session's graph, which any thread may use.
unsafe impl Send for GraphNetwork {}
// SAFETY: operations never change, so threads that share a network only read them.
unsafe impl Sync for GraphNetwork {}

impl GraphNetwork {
    pub fn new(
        session: GraphSession,
        plan: &TensorPlan,
        model: &str,
        file: &Path,
    ) -> Result<Self, PluginFault> {
        let find = |kind: &str, slot: &TensorSlot| {
            let endpoint = &slot.handle;
            session.tensor(&endpoint.operation, endpoint.index).ok_or_else(|| {
                PluginFault::invalid(format!(
                    "unable to load model '{model}' from {}: the graph has no tensor '{}:{}' for {kind} '{}'",
                    file.display(),
                    endpoint.operation,
                    endpoint.index,
                    slot.name
                ))
            })
        };
        let inputs =
            plan.inputs.iter().map(|slot| find("input", slot)).collect::<Result<_, _>>()?;
        let outputs =
            plan.outputs.iter().map(|slot| find("output", slot)).collect::<Result<_, _>>()?;
        Ok(Self { session, inputs, outputs })
    }
}

/// Types and shapes that TensorFlow infers for tensors of which the file says less.
pub fn complete_from_graph(signature: &mut Signature, session: &GraphSession) {
    let complete = |tensor: &mut GraphTensor| {
        if tensor.data_type != 0 && tensor.dims.is_some() {
            return;
        }
        let Some(found) = session.tensor(&tensor.operation, tensor.index) else { return };
        let (data_type, dims) = session.describe(found);
        if tensor.data_type == 0 {
            tensor.data_type = data_type;
        }
        if tensor.dims.is_none() {
            tensor.dims = dims;
        }
    };
    signature.inputs.iter_mut().chain(&mut signature.outputs).for_each(complete);
}
