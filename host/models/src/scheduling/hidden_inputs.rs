//! Inputs that the host adds, which clients do not see.

use trtserver_request::{DType, InputRole, ModelSignature, TensorSpec};

/// Adds an input that clients do not see; returns its index.
pub fn hide_input(
    signature: &mut ModelSignature,
    name: &str,
    dtype: DType,
    dims: &[i64],
    role: InputRole,
) -> usize {
    signature.hidden.push(TensorSpec { role, ..TensorSpec::new(name, dtype, dims) });
    signature.inputs.len() + signature.hidden.len() - 1
}
