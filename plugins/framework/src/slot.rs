//! A tensor of a model as execution needs it, after the model's signature and the configuration
//! were found to agree.

/// One tensor. `H` is how the framework names it in a run.
#[derive(Debug, Clone)]
pub struct TensorSlot<H> {
    pub name: String,
    /// One of the interface's types.
    pub dtype: u32,
    /// The model's own shape, batch dimension first if it batches, -1 = dynamic. Of an output, the
    /// configured shape if that contradicts the file's.
    pub dims: Vec<i64>,
    /// The model does not say how many dimensions there are.
    pub unranked: bool,
    /// A scalar: one element for clients (`dims: [1]`), no dimension for the model.
    pub scalar: bool,
    /// Shape for clients and shape for the model, where the configuration reshapes.
    pub reshape: Option<(Vec<i64>, Vec<i64>)>,
    pub optional: bool,
    /// A ragged input, or an output that `batch_output` cuts: in a run it has the elements of all
    /// requests, in one dimension.
    pub flat: bool,
    /// An output that is an input of the model: the framework does not write it to a preallocated
    /// block.
    pub passed: bool,
    /// Shape in the configuration, for an output whose declared shape is a hint.
    pub configured: Option<ConfiguredShape>,
    pub handle: H,
}

/// The shape that a configuration gives an output, batch dimension first if the model batches, -1 =
/// any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredShape {
    pub dims: Vec<i64>,
    /// The user's, and not the file's: other shapes are refused.
    pub binding: bool,
    /// The file's shape, if no tensor has both.
    pub contradicts: Option<Vec<i64>>,
}

/// Configured tensors come first, in the configuration's order, so its positions are positions
/// here.
#[derive(Debug, Clone)]
pub struct TensorPlan<H> {
    pub inputs: Vec<TensorSlot<H>>,
    pub outputs: Vec<TensorSlot<H>>,
    pub batching: bool,
    /// The requests of a batch are executed in one run, since it has ragged or batch inputs.
    pub whole_batch: bool,
    /// Log lines about outputs whose configured shape contradicts the file's.
    pub notes: Vec<String>,
}

/// Position in the configuration if that is valid for the tensor, else looked up by name.
pub fn slot_position<H>(
    slots: &[TensorSlot<H>],
    index: Option<usize>,
    name: &str,
) -> Option<usize> {
    match index {
        Some(at) if slots.get(at).is_some_and(|slot| slot.name == name) => Some(at),
        _ => slots.iter().position(|slot| slot.name == name),
    }
}
