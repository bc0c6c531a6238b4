//! What no counter is kept for, measured when a report is made: small inputs, which lie in buffers
//! of the network, and what is parsed when a model is loaded.

use super::entry::{MemoryEntry, OwnerMemory};
use crate::{Model, ModelTable};
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::budget::SMALL;
use trtserver_base::ledger::LedgerOwner;
use trtserver_plugin_host::visit_executing;
use trtserver_request::{InferRequest, InputRole};

/// Bytes of small inputs of requests that wait or execute, by model version. Those of an isolated
/// model are in its arena when it executes them.
pub fn small_inputs(models: &ModelTable) -> HashMap<LedgerOwner, u64> {
    let mut sums = HashMap::new();
    let mut add = |request: &InferRequest, arena: Option<&Arena>| {
        let bytes = sum_small_inputs(request, arena) as u64;
        if bytes > 0 {
            *sums.entry(request.context().signature.owner).or_default() += bytes;
        }
    };
    let versions = models.all().into_values().flat_map(|model| {
        let served = model.versions.values().filter_map(|version| version.served());
        served.collect::<Vec<_>>()
    });
    for version in versions {
        version.scheduler.visit_waiting(&mut |request| add(request, version.arena.as_deref()));
    }
    visit_executing(|request| add(request, None));
    sums
}

/// Bytes of the client's inputs, if neither a reservation nor an arena has them: a message of more
/// than [`SMALL`] bytes is drawn from the memory budget with all that is in it.
fn sum_small_inputs(request: &InferRequest, arena: Option<&Arena>) -> usize {
    // Inputs of warm-up samples and null requests have holders of their own.
    if request.warmup || !request.context().is_counted() {
        return 0;
    }
    let signature = &request.context().signature;
    let of_client = |index| signature.input_spec(index).role == InputRole::Declared;
    let inputs = request.inputs.iter().filter(|input| of_client(input.index));
    let cpu = inputs.filter_map(|input| input.data.cpu());
    let outside = cpu.filter(|data| arena.is_none_or(|arena| arena.find_offset(data).is_none()));
    let bytes = outside.map(|data| data.len()).sum();
    if bytes < SMALL { bytes } else { 0 }
}

/// What all versions of a loaded model share: its configuration, as long as its protobuf message,
/// and its labels.
pub fn add_parsed(memory: &mut OwnerMemory, model: &Model) {
    if !model.is_loaded() {
        return;
    }
    let configuration = model.config.as_ref().map_or(0, |config| config.encoded_len());
    memory.add(MemoryEntry::cpu("configuration", configuration as u64));
    let mut labels = HashMap::new();
    for version in model.versions.values().filter_map(|version| version.served()) {
        let of_outputs =
            version.signature.outputs.iter().filter_map(|output| output.labels.as_ref());
        labels.extend(of_outputs.map(|labels| (Arc::as_ptr(labels), labels.bytes() as u64)));
    }
    memory.add(MemoryEntry::cpu("labels", labels.into_values().sum()));
}
