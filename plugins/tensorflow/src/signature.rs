//! Inputs and outputs that a model file declares, whatever its format.

/// Inputs and outputs, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    pub inputs: Vec<GraphTensor>,
    pub outputs: Vec<GraphTensor>,
    /// The SavedModel's `method_name`, for example `tensorflow/serving/predict`; empty for a
    /// GraphDef.
    pub method: String,
}

/// A tensor of the graph: output `index` of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphTensor {
    /// As configurations name it: the key in a SavedModel's signature, `op` or `op:index` of a
    /// GraphDef.
    pub name: String,
    pub operation: String,
    pub index: i32,
    /// TensorFlow's number of the element type (`DataType` of its protobuf files); 0 = the file
    /// does not say.
    pub data_type: i32,
    /// -1 = unknown size; `None` = unknown rank.
    pub dims: Option<Vec<i64>>,
}
