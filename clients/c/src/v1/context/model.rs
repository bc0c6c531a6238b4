//! `trtc_v1_model`: the model of a context, as the C header has it.

use crate::failure::c_string;
use std::ffi::{CString, c_char};
use std::sync::Arc;
use trtserver_client::v1::{DataType, ServedModel};

#[repr(C)]
struct RawTensor {
    name: *const c_char,
    dims: *const i64,
    dim_count: usize,
    data_type: i32,
    format: i32,
    is_shape_tensor: bool,
    byte_size: i64,
}

#[repr(C)]
pub struct RawModel {
    name: *const c_char,
    version: i64,
    correlation_id: u64,
    max_batch_size: u64,
    inputs: *const RawTensor,
    input_count: usize,
    outputs: *const RawTensor,
    output_count: usize,
    config: *const u8,
    config_size: usize,
}

/// `trtc_v1_model` and what it points to.
pub(super) struct ModelObject {
    pub raw: RawModel,
    _model: Arc<ServedModel>,
    _names: Vec<CString>,
    _tensors: [Vec<RawTensor>; 2],
    _config: Vec<u8>,
}

// SAFETY: the pointers lead to parts of the object, which do not change.
unsafe impl Send for ModelObject {}
// SAFETY: all that the object points to is its own and never changes, so threads only read it.
unsafe impl Sync for ModelObject {}

impl ModelObject {
    pub fn new(model: &Arc<ServedModel>, correlation_id: u64) -> Self {
        let mut names = vec![c_string(&model.name)];
        let byte_size = |kind: DataType, dims: &[i64]| {
            let name = kind.as_str_name().trim_start_matches("TYPE_");
            let size = trtserver_client::tensor::byte_size(name, dims);
            size.and_then(|size| i64::try_from(size).ok()).unwrap_or(-1)
        };
        let mut tensor = |name: &str, dims: &[i64], kind: DataType, format: i32, is_shape: bool| {
            names.push(c_string(name));
            RawTensor {
                name: names.last().map_or(std::ptr::null(), |name| name.as_ptr()),
                dims: dims.as_ptr(),
                dim_count: dims.len(),
                data_type: kind as i32,
                format,
                is_shape_tensor: is_shape,
                byte_size: byte_size(kind, dims),
            }
        };
        let of_input = model.inputs().iter();
        let inputs: Vec<_> = of_input
            .map(|i| tensor(&i.name, &i.dims, i.data_type(), i.format, i.is_shape_tensor))
            .collect();
        let of_output = model.outputs().iter();
        let outputs: Vec<_> = of_output
            .map(|o| tensor(&o.name, &o.dims, o.data_type(), 0, o.is_shape_tensor))
            .collect();
        let config = prost::Message::encode_to_vec(&model.config);
        let raw = RawModel {
            name: names[0].as_ptr(),
            version: model.version,
            correlation_id,
            max_batch_size: model.max_batch_size,
            inputs: inputs.as_ptr(),
            input_count: inputs.len(),
            outputs: outputs.as_ptr(),
            output_count: outputs.len(),
            config: config.as_ptr(),
            config_size: config.len(),
        };
        Self {
            raw,
            _model: model.clone(),
            _names: names,
            _tensors: [inputs, outputs],
            _config: config,
        }
    }
}
