//! The limit on what a request to an isolated model holds beside its tensors.

use trtserver_base::error::{Error, Result};
use trtserver_request::{CorrelationId, InferRequest, ParameterValue};

/// Limit of id, sequence id and parameters of a request: all requests of a batch share one message.
const MAX_METADATA: usize = 1 << 20;

/// Checks that id and parameters of a request fit into a message to a child process.
///
/// # Errors
/// They are too large.
pub fn check_metadata_size(request: &InferRequest) -> Result<()> {
    let of_sequence = match &request.sequence.id {
        CorrelationId::Text(text) => text.len(),
        CorrelationId::None | CorrelationId::Number(_) => 0,
    };
    let of_parameters = request.parameters.iter().map(|(key, value)| {
        // 32: the message overhead of a parameter.
        let text = if let ParameterValue::String(text) = value { text.len() } else { 0 };
        key.len() + text + 32
    });
    let size = request.id.len() + of_sequence + of_parameters.sum::<usize>();
    if size > MAX_METADATA {
        return Err(Error::invalid(format!(
            "model '{}': the request has {size} bytes of id and parameters; an isolated model accepts at most \
             {MAX_METADATA}",
            request.context().signature.model
        )));
    }
    Ok(())
}
