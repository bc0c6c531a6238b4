//! Control inputs of sequence batching: START, READY, END and CORRID.

use super::hidden_inputs::hide_input;
use bytes::Bytes;
use trtserver_base::ledger::LedgerHolder;
use trtserver_proto::v2::ModelSequenceBatching;
use trtserver_proto::v2::model_sequence_batching::Control;
use trtserver_proto::v2::model_sequence_batching::control::Kind;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::{DType, InputRole, ModelSignature};
use trtserver_scheduler::{CorrelationControl, FlagControl, SequenceControls};

/// Adds the control inputs to `signature`; `model_config` has checked them.
pub fn add_sequence_controls(
    sequence: &ModelSequenceBatching,
    signature: &mut ModelSignature,
) -> SequenceControls {
    let mut controls = SequenceControls::default();
    for input in &sequence.control_input {
        for control in &input.control {
            if control.kind() == Kind::ControlSequenceCorrid {
                let dtype = DType::from_proto(control.data_type()).unwrap_or(DType::Uint64);
                let index = hide_input(signature, &input.name, dtype, &[1], InputRole::Control);
                let name = input.name.as_str().into();
                controls.corrid = Some(CorrelationControl { input: index, name, dtype });
                continue;
            }
            let (dtype, false_true) = control_values(control);
            let index = hide_input(signature, &input.name, dtype, &[1], InputRole::Control);
            let flag = Some(FlagControl { input: index, dtype, false_true });
            match control.kind() {
                Kind::ControlSequenceStart => controls.start = flag,
                Kind::ControlSequenceEnd => controls.end = flag,
                _ => controls.ready = flag,
            }
        }
    }
    controls
}

/// Type of a flag, and its values for false and true.
fn control_values(control: &Control) -> (DType, [Bytes; 2]) {
    let bytes = |value: &[u8]| AlignedBuf::copy_parts(&[value], LedgerHolder::Control).into_bytes();
    if let [no, yes] = *control.int32_false_true {
        return (DType::Int32, [no, yes].map(|v| bytes(&v.to_le_bytes())));
    }
    if let [no, yes] = *control.fp32_false_true {
        return (DType::Fp32, [no, yes].map(|v| bytes(&v.to_le_bytes())));
    }
    let no = control.bool_false_true.first().copied().unwrap_or(false);
    let yes = control.bool_false_true.get(1).copied().unwrap_or(true);
    (DType::Bool, [no, yes].map(|v| bytes(&[u8::from(v)])))
}
