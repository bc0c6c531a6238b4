//! A request that is sent often: its header is checked and encoded once, only the bytes of its
//! inputs change.

use super::run::Prepared;
use super::{Context, OutputFormat, Run, RunResults};
use crate::error::{Error, Kind, Result};
use crate::v1::InferRequest;
use crate::v1::infer::{EncodedRequest, OutgoingRequest, RequestTensors};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;

/// A checked and encoded request that is sent many times; only the bytes of its inputs change. It
/// keeps the correlation id that the context had when it was made.
#[derive(Debug)]
pub struct Template {
    request: InferRequest,
    encoded: EncodedRequest,
    formats: BTreeMap<String, OutputFormat>,
    batch_size: u32,
    /// Where the data of each input is that is not in shared memory, in the order of the model's
    /// configuration.
    places: Vec<Range<usize>>,
}

impl Template {
    /// Bytes of all inputs that are not in shared memory.
    #[must_use]
    pub fn byte_size(&self) -> usize {
        self.places.iter().map(Range::len).sum()
    }

    pub(crate) fn check(&self, size: usize) -> Result<()> {
        let expected = self.byte_size();
        if size == expected {
            return Ok(());
        }
        let model = &self.request.model;
        Err(Error::invalid(format!(
            "the inputs of a prepared request for model '{model}' have {size} bytes, expected {expected}"
        )))
    }
}

impl Context {
    /// Checks and encodes a request. The sizes of its inputs count, their bytes are not kept.
    /// `order` names the inputs in the order in which [`run_template`](Self::run_template) gets
    /// their data; others follow in the order of the configuration.
    ///
    /// # Errors
    /// An input is incomplete, or the context has a stream, on which each request has a number.
    pub fn template<S: AsRef<str>>(&self, run: &Run, order: &[S]) -> Result<Template> {
        if self.is_streaming() {
            let text = "requests of a stream cannot be prepared: each has a number";
            return Err(Error::new(Kind::Unsupported, text));
        }
        let Prepared { mut request, formats, batch_size, .. } = run.prepare(0)?;
        request.check()?;
        let encoded = EncodedRequest::new(self.client.protocol(), &request)?;
        let inputs = std::mem::take(&mut request.inputs);
        let header = request.header.input.iter().filter(|input| input.shared_memory.is_none());
        let mut sent: Vec<_> = header.zip(inputs).enumerate().collect();
        let rank = |name: &str| order.iter().position(|other| other.as_ref() == name);
        sent.sort_by_key(|(_, (input, _))| rank(&input.name).unwrap_or(usize::MAX));
        let mut places = vec![0..0; sent.len()];
        let mut end = 0;
        for (at, (_, slices)) in &sent {
            let start = end;
            end += slices.iter().map(Bytes::len).sum::<usize>();
            places[*at] = start..end;
        }
        drop(sent);
        Ok(Template { request, encoded, formats, batch_size, places })
    }

    /// Sends a request of a template and waits for the results. `data` has the bytes of all inputs
    /// that are not in shared memory, one behind the other.
    ///
    /// # Errors
    /// `data` has another size than the template, or the request failed.
    pub async fn run_template(&self, template: &Template, data: &[u8]) -> Result<RunResults> {
        let Template { request, encoded, formats, batch_size, places } = template;
        template.check(data.len())?;
        let tensors = RequestTensors::Joined { data, places };
        let response =
            self.client.infer_encoded(OutgoingRequest { request, encoded, tensors }).await;
        self.results(response, formats, *batch_size)
    }
}
