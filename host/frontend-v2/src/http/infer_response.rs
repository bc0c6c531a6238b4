//! Encodes an inference response: JSON, then the binary sections, and compresses it on request.

use super::infer_request::ResponseSpec;
use super::json::{encode, write};
use crate::classes;
use bytes::{Buf, Bytes};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use smallvec::SmallVec;
use std::io::Read;
use std::sync::Arc;
use trtserver_base::budget;
use trtserver_base::budget::{BudgetExhaustion, MemoryReservation, out_of_memory, request_memory};
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_models::OpenVersion;
use trtserver_request::{InferResponse, OutputTensor};
use trtserver_wire::chunks;
use trtserver_wire::chunks::Chunks;
use trtserver_wire::compression::Coding;
use trtserver_wire::decode_workers;
use trtserver_wire::decode_workers::MAX_INLINE;
use trtserver_wire::http::accept::accepted_coding;
use trtserver_wire::http::body::ResponseBody;
use trtserver_wire::spare_buffer::take_buffer;

/// Length of the JSON part, in requests and responses.
pub const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// Bytes of tensors that are not sent as they are, but written as JSON or ranked.
fn converted<'a>(
    served: &'a OpenVersion,
    spec: &'a ResponseSpec,
    response: &'a InferResponse,
) -> impl Iterator<Item = &'a OutputTensor> {
    response.outputs.iter().filter(|output| {
        let index = served.signature.output(&output.name);
        let listed = spec.outputs.iter().find(|o| Some(o.index) == index);
        listed.map_or(!spec.binary, |o| !o.binary || o.classes > 0)
    })
}

/// The response is to be encoded on a decode worker.
pub fn is_heavy(served: &OpenVersion, spec: &ResponseSpec, response: &InferResponse) -> bool {
    let sum = |outputs: &mut dyn Iterator<Item = &OutputTensor>| -> usize {
        outputs.map(|o| o.data.payload().len()).sum()
    };
    // Most responses are small, and need no look-up.
    sum(&mut response.outputs.iter()) > MAX_INLINE
        && sum(&mut converted(served, spec, response)) > MAX_INLINE
}

/// As [`EncodedResponse::new`], on a decode worker.
///
/// # Errors
/// In addition, there is no memory for the text.
pub async fn encode_on_worker(
    served: Arc<OpenVersion>,
    spec: ResponseSpec,
    response: InferResponse,
    headers: HeaderMap,
) -> Result<EncodedResponse> {
    let outputs = converted(&served, &spec, &response);
    let text = outputs.map(|o| encode::max_text(o.dtype, o.data.payload().len())).sum();
    let reservation = request_memory().reserve(text, tag(&served)).await;
    let reservation = reservation.map_err(BudgetExhaustion::refuse)?;
    let encode = move || EncodedResponse::encode(&served, &spec, response, headers, reservation);
    decode_workers::run_on_worker(encode).await?
}

/// The binary sections after the JSON.
type Sections = SmallVec<[Bytes; 2]>;

/// An encoded response, which may still have to be compressed.
pub struct EncodedResponse {
    headers: HeaderMap,
    chunks: Chunks,
    coding: Option<Coding>,
    tag: MemoryTag,
}

impl EncodedResponse {
    /// The response to a request with these `headers`. Their memory is reused for the headers of
    /// the response, and for the next request on the connection.
    ///
    /// # Errors
    /// An output cannot be written in the requested form.
    pub fn new(
        served: &OpenVersion,
        spec: &ResponseSpec,
        response: InferResponse,
        headers: HeaderMap,
    ) -> Result<Self> {
        Self::encode(served, spec, response, headers, request_memory().empty(tag(served)))
    }

    /// `reservation` pays for a long JSON text.
    fn encode(
        served: &OpenVersion,
        spec: &ResponseSpec,
        response: InferResponse,
        mut headers: HeaderMap,
        mut reservation: MemoryReservation,
    ) -> Result<Self> {
        let coding = accepted_coding(&headers);
        headers.clear();
        let mut sections = Sections::new();
        let long = reservation.bytes();
        let mut json = self::json(served, spec, response, long, &mut sections)?;
        let binary = sections.iter().any(|s| !s.is_empty());
        let content_type = if binary { "application/octet-stream" } else { "application/json" };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if binary {
            headers.insert(HEADER_LENGTH, number(json.len()));
        }
        let mut chunks = if long > 0 {
            json.shrink_to_fit();
            reservation.shrink_to(json.len());
            let mut chunks = Chunks::default();
            chunks.push(budget::charge_bytes(json, reservation));
            chunks
        } else {
            Chunks::from(json)
        };
        sections.into_iter().for_each(|s| chunks.push(s));
        Ok(Self { headers, chunks, coding, tag: tag(served) })
    }

    /// The response, if it is not to be compressed; else the coding.
    pub fn uncompressed(self) -> std::result::Result<Response<ResponseBody>, (Box<Self>, Coding)> {
        match self.coding {
            None => Ok(whole(self.headers, ResponseBody::from_chunks(self.chunks))),
            Some(coding) => Err((Box::new(self), coding)),
        }
    }

    pub async fn compressed(mut self: Box<Self>, coding: Coding) -> Result<Response<ResponseBody>> {
        self.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        let body = compress_body(self.chunks, coding, self.tag).await?;
        Ok(whole(self.headers, ResponseBody::from(body)))
    }
}

/// What the text of a response is entered under in the ledger.
fn tag(served: &OpenVersion) -> MemoryTag {
    served.signature.owner.tag(LedgerHolder::Encode)
}

fn whole(headers: HeaderMap, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

/// `n` as a header value. Most lengths have three digits and come from a table.
fn number(n: usize) -> HeaderValue {
    static TEXTS: [[u8; 3]; 1000] = {
        let mut texts = [[b'0'; 3]; 1000];
        let mut n = 0;
        while n < texts.len() {
            texts[n] = [b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
            n += 1;
        }
        texts
    };
    match TEXTS.get(n).map(|text| std::str::from_utf8(text)) {
        Some(Ok(text)) if n >= 100 => HeaderValue::from_static(text),
        _ => HeaderValue::from(n),
    }
}

fn json(
    served: &OpenVersion,
    spec: &ResponseSpec,
    response: InferResponse,
    long: usize,
    sections: &mut Sections,
) -> Result<Vec<u8>> {
    let size = |o: &OutputTensor| 128 + o.name.len() + chunks::copied_bytes(o.data.payload().len());
    let outputs: usize = response.outputs.iter().map(size).sum();
    let mut out = take_buffer(96 + spec.id.len() + served.name.len() + outputs);
    // Large texts are not reallocated while they are written, so no allocation can fail there.
    out.try_reserve_exact(long).map_err(|_| out_of_memory("a JSON response", long))?;
    let mut object = write::Object::new(&mut out);
    if !spec.id.is_empty() {
        write::write_string(object.literal_key("id"), &spec.id);
    }
    write::write_string(object.literal_key("model_name"), served.name.as_bytes());
    write::write_string(object.literal_key("model_version"), served.version_text.as_bytes());
    if !response.parameters.is_empty() {
        let mut inner = write::Object::new(object.literal_key("parameters"));
        for (key, value) in &response.parameters {
            write::write_parameter(inner.key(key), value);
        }
        inner.end();
    }
    let mut failed = None;
    write::write_array(object.literal_key("outputs"), response.outputs, |out, output| {
        if failed.is_none() {
            failed = self::output(served, spec, out, output, sections).err();
        }
    });
    object.end();
    failed.map_or(Ok(out), Err)
}

fn output(
    served: &OpenVersion,
    spec: &ResponseSpec,
    out: &mut Vec<u8>,
    mut output: OutputTensor,
    sections: &mut Sections,
) -> Result<()> {
    let declared = &served.signature.outputs;
    let listed = spec.outputs.iter().find(|o| declared[o.index].name == output.name);
    let binary = listed.map_or(spec.binary, |o| o.binary);
    if let Some(k) = listed.map(|o| o.classes).filter(|k| *k > 0) {
        output = classes::classify_output(&served.signature, &output, k)?;
    }
    let mut object = write::Object::new(out);
    write::write_string(object.literal_key("name"), output.name.as_bytes());
    write::write_string(object.literal_key("datatype"), output.dtype.v2_name().as_bytes());
    write::write_shape(object.literal_key("shape"), &output.shape);
    if output.data.placed().is_some() {
        // Written to shared memory: an entry without data.
    } else if binary {
        let mut parameters = write::Object::new(object.literal_key("parameters"));
        write::plain(parameters.literal_key("binary_data_size"), output.data.payload().len());
        parameters.end();
        sections.push(output.data.payload().clone());
    } else {
        encode::encode_data(object.key("data"), &output.name, output.dtype, output.data.payload())?;
    }
    object.end();
    Ok(())
}

async fn compress_body(chunks: Chunks, coding: Coding, tag: MemoryTag) -> Result<Bytes> {
    let (mut chunks, len) = chunks.finish();
    let mut all: Box<dyn Read + Send> = Box::new(std::io::empty());
    while let Some(last) = chunks.pop() {
        all = Box::new(last.reader().chain(all));
    }
    coding.compress(all, len, tag).await.map_err(|e| {
        let own = e.own_fault("a compressed response");
        own.unwrap_or_else(|| Error::internal("compression of the response failed"))
    })
}

#[cfg(test)]
#[path = "infer_response_tests.rs"]
mod tests;
