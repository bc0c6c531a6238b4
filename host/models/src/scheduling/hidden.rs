//! Inputs that the host adds, which clients do not see.

use trtserver_request::{DType, Role, Signature, TensorSpec};

/// Adds an input that clients do not see; returns its index.
pub fn hide(
    signature: &mut Signature,
    name: &str,
    dtype: DType,
    dims: &[i64],
    role: Role,
) -> usize {
    signature.hidden.push(TensorSpec { role, ..TensorSpec::new(name, dtype, dims) });
    signature.inputs.len() + signature.hidden.len() - 1
}
