//! Implicit states of sequence batching: their inputs and initial values.

use super::super::load_limits::LoadMemory;
use super::hidden_inputs::hide_input;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_model_files::FilePlaces;
use trtserver_model_files::stays_inside;
use trtserver_proto::v2::model_sequence_batching::initial_state::StateData;
use trtserver_proto::v2::model_sequence_batching::{InitialState, State};
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::state_spec::{StateSpec, StateTensor};
use trtserver_request::strings;
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, InputRole, ModelSignature, Shape, ShapeText};

/// Directory of initial state files in a model's directory.
const INITIAL_STATE_DIR: &str = "initial_state";

/// Adds the input of `state` to `signature`. `places` are those of the model's files.
pub fn add_implicit_states(
    state: &State,
    signature: &mut ModelSignature,
    places: &FilePlaces,
    memory: &mut LoadMemory,
) -> Result<StateSpec> {
    let (model, name) = (signature.model.clone(), &state.input_name);
    let dtype = DType::from_proto(state.data_type()).ok_or_else(|| {
        Error::invalid(format!("state '{name}' of model '{model}' must specify 'data_type'"))
    })?;
    let tag = signature.owner.tag(LedgerHolder::Control);
    let initial = match state.initial_state.first() {
        Some(initial) => initial_state(initial, state, dtype, places, &model, memory, tag)?,
        None => {
            let shape: Shape = state.dims.iter().map(|d| if *d < 0 { 1 } else { *d }).collect();
            initial_zeros(&shape, dtype, name, &model, memory, tag)?
        }
    };
    let row = signature.batching().then_some(1);
    let shape = row.into_iter().chain(initial.shape).collect();
    Ok(StateSpec {
        input: hide_input(signature, name, dtype, &state.dims, InputRole::State),
        output: state.output_name.as_str().into(),
        dtype,
        dims: state.dims.clone(),
        initial: StateTensor { shape, data: initial.data },
    })
}

fn initial_zeros(
    shape: &[i64],
    dtype: DType,
    state: &str,
    model: &str,
    memory: &mut LoadMemory,
    tag: MemoryTag,
) -> Result<StateTensor> {
    // A zero string is the four bytes of a zero length.
    let bytes = element_count(shape).and_then(|n| n.checked_mul(dtype.size().unwrap_or(4)));
    if let Some(bytes) = bytes {
        let what = || format!("initial state of state '{state}' of model '{model}'");
        memory.take(bytes as u64, what).map_err(|e| Error::invalid(e.message))?;
    }
    let Some(data) = bytes.and_then(|bytes| AlignedBuf::try_new(bytes, tag)) else {
        return Err(Error::invalid(format!(
            "initial state of state '{state}' of model '{model}': shape {} of {} does not fit into memory",
            ShapeText(shape),
            dtype.config_name()
        )));
    };
    Ok(StateTensor { shape: shape.into(), data: data.into_bytes().into() })
}

fn initial_state(
    initial: &InitialState,
    state: &State,
    dtype: DType,
    places: &FilePlaces,
    model: &str,
    memory: &mut LoadMemory,
    tag: MemoryTag,
) -> Result<StateTensor> {
    let name = &state.input_name;
    let shape: Shape = initial.dims.iter().copied().collect();
    let file = match &initial.state_data {
        Some(StateData::DataFile(file)) => file,
        _ => return initial_zeros(&shape, dtype, name, model, memory, tag),
    };
    if !stays_inside(file) {
        return Err(Error::invalid(format!(
            "initial state '{}' of model '{model}': file '{file}' must lie inside the model's \
             '{INITIAL_STATE_DIR}' directory",
            initial.name
        )));
    }
    let dir = places.model_dir().join(INITIAL_STATE_DIR);
    let path = places.resolve(&dir, file).map_err(|refusal| {
        Error::invalid(format!("initial state '{}' of model '{model}': {refusal}", initial.name))
    })?;
    let data = memory.read(&path, "initial state file").map_err(|e| {
        let unreadable = format!(
            "failed to read initial state file '{}' of state '{name}' of model '{model}'",
            path.display()
        );
        Error::invalid(e.into_config_error(|e| format!("{unreadable}: {e}")).message)
    })?;
    let elements = element_count(&shape).unwrap_or(0);
    let fits = match dtype.size() {
        Some(size) => elements.checked_mul(size) == Some(data.len()),
        None => strings::check_strings(&data, elements).is_ok_and(|end| end == data.len()),
    };
    if !fits {
        let expected = dtype.size().map_or(0, |size| elements.saturating_mul(size));
        return Err(Error::invalid(format!(
            "initial state of state '{name}' of model '{model}': shape {} of {} needs {expected} bytes, \
             file '{}' has {}",
            ShapeText(&shape),
            dtype.config_name(),
            path.display(),
            data.len()
        )));
    }
    Ok(StateTensor { shape, data: AlignedBuf::copy_parts(&[&data], tag).into_bytes().into() })
}
