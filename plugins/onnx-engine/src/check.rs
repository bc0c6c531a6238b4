//! What the check of a model's signature against its configuration needs to know of ONNX Runtime's
//! tensors.

use crate::session::{SessionTensor, Signature};
use crate::types;
use ort_sys::ONNXTensorElementDataType;
use std::ffi::CString;
use trtserver_framework::check::{self, Dims, Element, ModelTensors};
use trtserver_framework::slot;
use trtserver_plugin_api::abi::types::dtype;

/// How ONNX Runtime names a tensor in a run.
#[derive(Debug, Clone)]
pub struct OnnxTensor {
    pub c_name: CString,
    pub element: ONNXTensorElementDataType,
}

pub type TensorSlot = slot::TensorSlot<OnnxTensor>;
pub type TensorPlan = slot::TensorPlan<OnnxTensor>;

impl Signature {
    pub fn tensors(&self) -> ModelTensors<'_, SessionTensor> {
        ModelTensors { inputs: &self.inputs, defaulted: &self.defaulted, outputs: &self.outputs }
    }
}

impl check::TensorDeclaration for SessionTensor {
    type Handle = OnnxTensor;

    const OUTPUT_SHAPES_ARE_HINTS: bool = true;

    const NOT_DENSE_ADVICE: &str = "; converters for scikit-learn, LightGBM and XGBoost write a tensor instead with the \
                                    option zipmap=False";

    fn name(&self) -> &str {
        &self.name
    }

    fn element(&self) -> Element {
        match (self.element, types::to_dtype(self.element)) {
            (0, _) => Element::NotDense(types::not_dense(self.kind)),
            (element, dtype::INVALID) => Element::Foreign(types::element_name(element)),
            (_, dtype) => Element::Known(dtype),
        }
    }

    fn dims(&self) -> Dims<'_> {
        if self.dims.is_empty() { Dims::ScalarOrUnknown } else { Dims::Known(&self.dims) }
    }

    fn first_dim_name(&self) -> Option<&str> {
        let name = self.dim_names.first().map(String::as_str);
        name.filter(|name| !name.is_empty())
    }

    fn handle(&self, dtype: u32) -> Option<OnnxTensor> {
        Some(OnnxTensor { c_name: self.c_name.clone(), element: types::to_element(dtype)? })
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
