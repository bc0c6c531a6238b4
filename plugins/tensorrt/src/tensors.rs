//! The inputs and outputs of an engine, as its tensors are compared with the configuration.

use crate::types;
use crate::vtable::TensorShape;
use std::ffi::CString;
use trtserver_framework::check::{Dims, Element, TensorDeclaration};

/// An input or output of an engine.
#[derive(Clone, Debug)]
pub struct EngineTensor {
    pub name: String,
    pub c_name: CString,
    pub is_input: bool,
    /// TensorRT's `DataType`.
    pub kind: i32,
    /// -1 = dynamic; without the batch dimension if the engine's is implicit.
    pub shape: TensorShape,
    /// A shape tensor, in CPU memory: read while the run is enqueued.
    pub is_shape: bool,
    /// TensorRT's `TensorFormat`; 0 = linear.
    pub format: i32,
    /// Position among the bindings of an engine with implicit batch dimension.
    pub binding: usize,
}

/// A tensor as [`trtserver_framework::check`] takes it.
#[derive(Clone, Debug)]
pub struct DeclaredTensor {
    pub tensor: EngineTensor,
    /// Batch dimension first, if the model batches.
    pub dims: Vec<i64>,
}

impl DeclaredTensor {
    /// `batches`: the configuration has a batch dimension.
    pub fn new(tensor: &EngineTensor, implicit: bool, batches: bool) -> DeclaredTensor {
        let mut dims = tensor.shape.dims().to_vec();
        if implicit && batches {
            dims.insert(0, -1);
        }
        DeclaredTensor { tensor: tensor.clone(), dims }
    }
}

/// What execution needs of a tensor.
#[derive(Clone, Debug)]
pub struct TensorHandle {
    pub c_name: CString,
    pub is_shape: bool,
    /// TensorRT's `DataType`.
    pub kind: i32,
    pub binding: usize,
}

impl TensorDeclaration for DeclaredTensor {
    type Handle = TensorHandle;

    fn name(&self) -> &str {
        &self.tensor.name
    }

    fn element(&self) -> Element {
        match self.tensor.format {
            0 => types::to_element(self.tensor.kind),
            _ => Element::NotDense("a format that is not linear"),
        }
    }

    fn dims(&self) -> Dims<'_> {
        // The values of a shape tensor include the batch size, its shape never does.
        if self.tensor.is_shape { Dims::Unknown } else { Dims::Known(&self.dims) }
    }

    fn handle(&self, dtype: u32) -> Option<TensorHandle> {
        (types::to_element(self.tensor.kind) == Element::Known(dtype)).then(|| TensorHandle {
            c_name: self.tensor.c_name.clone(),
            is_shape: self.tensor.is_shape,
            kind: self.tensor.kind,
            binding: self.tensor.binding,
        })
    }
}
