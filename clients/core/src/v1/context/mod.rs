//! Inference context of one model: learns its tensors from the server's status, checks requests
//! before they are sent, and keeps statistics. Texts and behaviour are those of the original C++
//! library.

mod context_stream;
mod input;
mod result;
mod run;
mod template;

pub use input::Input;
pub use result::{Class, OutputResult, RunResults};
pub use run::{OutputFormat, Prepared, Run, RunOptions};
pub use template::Template;

use super::{Client, InferResponse, ModelInput, ModelOutput};
use crate::error::{Error, Kind, Result};
use crate::settings::Settings;
use crate::sync::Mutex;
use context_stream::{ContextStream, Delivery};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trtserver_proto::v2::ModelConfig;

/// What a context is made for.
#[derive(Clone, Debug)]
pub struct ContextOptions {
    /// Name of the model.
    pub model: String,
    /// Negative: the latest.
    pub version: i64,
    /// 0: the requests belong to no sequence.
    pub correlation_id: u64,
    /// All requests go over one gRPC stream, in order.
    pub streaming: bool,
}

impl ContextOptions {
    /// The latest version, without a sequence or a stream.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), version: -1, correlation_id: 0, streaming: false }
    }
}

/// A model as its context sees it.
#[derive(Clone, Debug)]
pub struct ServedModel {
    /// Name of the model.
    pub name: String,
    /// As it was asked for: negative for the latest.
    pub version: i64,
    /// 0 if the model does not batch.
    pub max_batch_size: u64,
    /// As the server has completed it.
    pub config: ModelConfig,
}

impl ServedModel {
    /// In the order of the configuration.
    #[must_use]
    pub fn inputs(&self) -> &[ModelInput] {
        &self.config.input
    }

    /// In the order of the configuration.
    #[must_use]
    pub fn outputs(&self) -> &[ModelOutput] {
        &self.config.output
    }

    /// # Errors
    /// The model has no such output.
    pub fn output(&self, name: &str) -> Result<&ModelOutput> {
        Ok(&self.outputs()[self.output_index(name)?])
    }

    fn output_index(&self, name: &str) -> Result<usize> {
        self.outputs()
            .iter()
            .position(|output| output.name == name)
            .ok_or_else(|| Error::invalid(format!("unknown output '{name}' for '{}'", self.name)))
    }

    /// Index of an input in the configuration.
    ///
    /// # Errors
    /// The model has no such input.
    pub fn input_index(&self, name: &str) -> Result<usize> {
        self.inputs()
            .iter()
            .position(|input| input.name == name)
            .ok_or_else(|| Error::invalid(format!("unknown input '{name}' for '{}'", self.name)))
    }
}

/// Sums over the completed requests of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests with a response.
    pub completed_request_count: u64,
    /// From the start of the calls to the end of the responses.
    pub cumulative_total_request_time_ns: u64,
    /// HTTP: from the start until the last byte was written. gRPC: encoding.
    pub cumulative_send_time_ns: u64,
    /// HTTP: from the head of the response to its end. gRPC: decoding.
    pub cumulative_receive_time_ns: u64,
}

/// Inference context of one model: checks and sends requests, and counts their times. Its
/// connections belong to the tokio runtime that it was made on.
pub struct Context {
    client: Client,
    model: Arc<ServedModel>,
    correlation_id: Arc<AtomicU64>,
    next_id: AtomicU64,
    statistics: Mutex<Statistics>,
    streamed: Option<ContextStream>,
}

impl Context {
    /// Asks the server for the status of the model.
    ///
    /// # Errors
    /// The settings are wrong, the server does not respond or does not know the model.
    pub async fn new(settings: &Settings, options: &ContextOptions) -> Result<Self> {
        Self::over(Client::new(settings)?, options).await
    }

    /// Creates the context of a blocking client.
    pub(crate) async fn new_direct(settings: &Settings, options: &ContextOptions) -> Result<Self> {
        Self::over(Client::new_direct(settings)?, options).await
    }

    async fn over(client: Client, options: &ContextOptions) -> Result<Self> {
        let model = Arc::new(describe_model(&client, options).await?);
        let streamed = match options.streaming {
            true => Some(ContextStream::open(&client).await?),
            false => None,
        };
        Ok(Self {
            client,
            model,
            correlation_id: Arc::new(AtomicU64::new(options.correlation_id)),
            next_id: AtomicU64::new(1),
            statistics: Mutex::default(),
            streamed,
        })
    }

    /// A context of the same model on other connections; the correlation id is shared.
    pub(crate) fn sibling(&self, settings: &Settings) -> Result<Self> {
        Ok(Self {
            client: Client::new(settings)?,
            model: self.model.clone(),
            correlation_id: self.correlation_id.clone(),
            next_id: AtomicU64::new(1),
            statistics: Mutex::default(),
            streamed: None,
        })
    }

    /// The client whose connections it uses.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The model as the context sees it.
    #[must_use]
    pub fn model(&self) -> &Arc<ServedModel> {
        &self.model
    }

    /// Whether all requests go over one gRPC stream.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.streamed.is_some()
    }

    /// Correlation id of the next requests: the context's own, or the last one that options have
    /// set.
    #[must_use]
    pub fn correlation_id(&self) -> u64 {
        self.correlation_id.load(Ordering::Relaxed)
    }

    /// The sums so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        *self.statistics.lock()
    }

    /// A request to fill in. It may be sent several times, and changed in between.
    #[must_use]
    pub fn new_run(&self) -> Run {
        Run::new(self.model.clone(), self.correlation_id.clone())
    }

    /// Numbers requests from 1.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends what the run holds and waits for the results.
    ///
    /// # Errors
    /// An input is incomplete, or the request failed.
    pub async fn run(&self, run: &Run) -> Result<RunResults> {
        let id = if self.is_streaming() { self.next_id() } else { 0 };
        self.send(run.prepare(id)?).await
    }

    /// Sends a prepared request.
    ///
    /// # Errors
    /// The request failed.
    pub async fn send(&self, prepared: Prepared) -> Result<RunResults> {
        self.send_in_order(prepared).await.0
    }

    /// As [`send`](Self::send). The next response of a stream is not delivered before the
    /// `Delivery` is dropped.
    pub(crate) async fn send_in_order(&self, prepared: Prepared) -> (Result<RunResults>, Delivery) {
        let Prepared { request, formats, batch_size, borrow } = prepared;
        let (response, delivery) = match &self.streamed {
            Some(streamed) => streamed.run(&self.client, &request).await,
            None => (self.client.infer(&request).await, Delivery::default()),
        };
        drop(request);
        self.client.settle(&borrow).await;
        (self.results(response, &formats, batch_size), delivery)
    }

    fn results(
        &self,
        response: Result<InferResponse>,
        formats: &BTreeMap<String, OutputFormat>,
        batch_size: u32,
    ) -> Result<RunResults> {
        let response = response?;
        let timing = response.timing;
        let results = RunResults::new(&self.model, response, formats, batch_size).map_err(|e| {
            e.with_asked(|| format!("{}, model '{}'", self.client.url(), self.model.name))
        })?;
        let mut statistics = self.statistics.lock();
        statistics.completed_request_count += 1;
        if let Some(timing) = timing {
            let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            statistics.cumulative_total_request_time_ns += ns(timing.end - timing.start);
            statistics.cumulative_send_time_ns += ns(timing.sent - timing.start);
            statistics.cumulative_receive_time_ns += ns(timing.end - timing.first_byte);
        }
        Ok(results)
    }
}

async fn describe_model(client: &Client, options: &ContextOptions) -> Result<ServedModel> {
    let name = &options.model;
    let mut status = client.status(Some(name)).await?.value;
    let unknown = || {
        Error::new(Kind::Internal, format!("unable to find status information for \"{name}\""))
            .with_asked(|| client.url().to_owned())
    };
    let config = status.model_status.remove(name).ok_or_else(unknown)?.config;
    let config = config.unwrap_or_default();
    Ok(ServedModel {
        name: name.clone(),
        version: options.version,
        max_batch_size: u64::try_from(config.max_batch_size).unwrap_or(0),
        config,
    })
}
