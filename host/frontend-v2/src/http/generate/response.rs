//! A response as one JSON object: outputs, `model_name`, `model_version`, `id` and response
//! parameters by name, in alphabetical order.

use super::responses::Responses;
use crate::http::json::{encode, write};
use crate::http::management_json;
use bytes::Bytes;
use std::sync::Arc;
use trtserver_base::budget;
use trtserver_base::budget::{BudgetExhaustion, MemoryReservation, out_of_memory, request_memory};
use trtserver_base::error::Result;
use trtserver_base::ledger::LedgerHolder;
use trtserver_models::OpenVersion;
use trtserver_request::tensor::element_count;
use trtserver_request::{InferResponse, OutputTensor, ParameterValue};
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::MAX_INLINE;

/// What is written around the object.
#[derive(Clone, Copy)]
pub enum BodyForm {
    Object,
    /// A server-sent event.
    Event,
}

impl BodyForm {
    fn parts(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Object => (b"", b""),
            Self::Event => (b"data: ", b"\n\n"),
        }
    }
}

enum ResponseMember<'a> {
    Text(&'a str),
    Parameter(&'a ParameterValue),
    Output(&'a OutputTensor),
}

/// The response as text; a large one is written on a decode worker.
///
/// # Errors
/// An output cannot be written as JSON, or there is no memory for the text.
pub async fn encode_generate_response(
    of: &Responses,
    response: InferResponse,
    form: BodyForm,
) -> Result<Bytes> {
    if response.byte_size() <= MAX_INLINE {
        return text(&of.served, &of.id, &response, form, 0).map(Bytes::from);
    }
    let long = |o: &OutputTensor| encode::max_text(o.dtype, o.data.payload().len());
    let long = response.outputs.iter().map(long).sum();
    let tag = of.served.signature.owner.tag(LedgerHolder::Encode);
    let reserved = request_memory().reserve(long, tag).await;
    let reservation = reserved.map_err(BudgetExhaustion::refuse)?;
    let (served, id) = (Arc::clone(&of.served), of.id.clone());
    decode_workers::run_on_worker(move || charged_text(&served, &id, &response, form, reservation))
        .await?
}

fn charged_text(
    served: &OpenVersion,
    id: &str,
    response: &InferResponse,
    form: BodyForm,
    mut reservation: MemoryReservation,
) -> Result<Bytes> {
    let mut text = text(served, id, response, form, reservation.bytes())?;
    text.shrink_to_fit();
    reservation.shrink_to(text.len());
    Ok(budget::charge_bytes(text, reservation))
}

/// `long`: space for a long text, which is then not reallocated while it is written, so that no
/// allocation can fail there.
fn text(
    served: &OpenVersion,
    id: &str,
    response: &InferResponse,
    form: BodyForm,
    long: usize,
) -> Result<Vec<u8>> {
    // The first of equal names wins.
    let mut members: Vec<(&str, ResponseMember<'_>)> = Vec::with_capacity(8);
    members.extend(response.outputs.iter().map(|o| (&*o.name, ResponseMember::Output(o))));
    members.push(("model_name", ResponseMember::Text(&served.name)));
    members.push(("model_version", ResponseMember::Text(&served.version_text)));
    if !id.is_empty() {
        members.push(("id", ResponseMember::Text(id)));
    }
    members.extend(
        response.parameters.iter().map(|(key, p)| (key.as_str(), ResponseMember::Parameter(p))),
    );
    members.sort_by_key(|(name, _)| *name);
    members.dedup_by_key(|(name, _)| *name);

    let (before, after) = form.parts();
    let mut out = Vec::with_capacity(256);
    let room = long + before.len() + after.len();
    out.try_reserve(room).map_err(|_| out_of_memory("a JSON response", room))?;
    out.extend_from_slice(before);
    let mut object = write::Object::new(&mut out);
    for (name, member) in members {
        match member {
            ResponseMember::Text(text) => object.string(name, text),
            ResponseMember::Parameter(value) => write::write_parameter(object.key(name), value),
            ResponseMember::Output(output) => self::output(object.key(name), output)?,
        }
    }
    object.end();
    out.extend_from_slice(after);
    Ok(out)
}

/// A flat array; a single element without its brackets.
fn output(out: &mut Vec<u8>, output: &OutputTensor) -> Result<()> {
    let start = out.len();
    encode::encode_data(out, &output.name, output.dtype, output.data.payload())?;
    if element_count(&output.shape) == Some(1) {
        out.remove(start);
        out.pop();
    }
    Ok(())
}

/// An error as a server-sent event.
pub fn error_event(message: &str) -> Bytes {
    let (before, after) = BodyForm::Event.parts();
    Bytes::from([before, &management_json::error_json(message), after].concat())
}
