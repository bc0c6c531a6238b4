//! The client of v2 without async.

use super::calls::{BackgroundCalls, Call, CallCompletion};
use super::{RuntimeDriver, forward, wait_for};
use crate::borrow::Borrow;
use crate::error::{Error, Kind, Result};
use crate::settings::Settings;
use crate::shared::blocking_methods;
use crate::sync::Mutex;
use crate::v2;
use crate::v2::messages::{
    CudaSharedMemoryStatusResponse, ModelConfig, ModelMetadataResponse, ModelStatisticsResponse,
    RepositoryIndexResponse, ServerMetadataResponse, SystemSharedMemoryStatusResponse,
};
use crate::v2::{InferRequest, InferResponse, LoadOptions, LogSettings, TraceSettings};
use std::sync::Arc;
use std::time::Duration;

/// See [`v2::Client`]. May be used by several threads at the same time.
pub struct BlockingClient {
    driver: RuntimeDriver,
    inner: v2::Client,
    /// Client of the calls that run in the background.
    background: v2::Client,
    calls: BackgroundCalls,
    deadline: Option<Duration>,
}

impl BlockingClient {
    /// Connects at the first call.
    ///
    /// # Errors
    /// The settings contradict each other or cannot be read.
    pub fn new(settings: &Settings) -> Result<Self> {
        Ok(Self {
            driver: RuntimeDriver::new()?,
            inner: v2::Client::new_direct(settings)?,
            background: v2::Client::new(settings)?,
            calls: BackgroundCalls::default(),
            deadline: settings.call_deadline()?,
        })
    }

    blocking_methods!(v2::Client);

    forward! {
        is_live() -> bool;
        is_ready() -> bool;
        /// False also if the server does not have the model.
        is_model_ready(model: &str, version: &str) -> bool;
        server_metadata() -> ServerMetadataResponse;
        model_metadata(model: &str, version: &str) -> ModelMetadataResponse;
        model_config(model: &str, version: &str) -> ModelConfig;
        /// Statistics of one model, or of all models if the name is empty.
        statistics(model: &str, version: &str) -> ModelStatisticsResponse;
        /// Models in the repository; with `ready` only ready models.
        repository_index(ready: bool) -> RepositoryIndexResponse;
        /// Loads or reloads a model. A deadline must leave time for it; the usual one is
        /// [`DEFAULT_LOAD_DEADLINE`](crate::DEFAULT_LOAD_DEADLINE).
        load(model: &str, options: &LoadOptions) -> ();
        /// `dependents`: unloads also the models that an ensemble loaded.
        unload(model: &str, dependents: bool) -> ();
        /// `key` names the POSIX object, `offset` is where the region begins in it.
        register_system_shared_memory(name: &str, key: &str, offset: u64, byte_size: u64) -> ();
        /// `raw_handle` is a CUDA IPC handle of 64 bytes.
        register_cuda_shared_memory(name: &str, raw_handle: &[u8], device_id: i64, byte_size: u64) -> ();
        /// One region, or with an empty name all system regions.
        unregister_system_shared_memory(name: &str) -> ();
        /// One region, or with an empty name all CUDA regions.
        unregister_cuda_shared_memory(name: &str) -> ();
        /// One region, or with an empty name all system regions.
        system_shared_memory_status(name: &str) -> SystemSharedMemoryStatusResponse;
        /// One region, or with an empty name all CUDA regions.
        cuda_shared_memory_status(name: &str) -> CudaSharedMemoryStatusResponse;
        /// Changes the settings that are listed, and returns all.
        trace_settings(model: &str, changes: &TraceSettings) -> TraceSettings;
        /// Changes the settings that are listed, and returns all.
        log_settings(changes: &LogSettings) -> LogSettings;
        /// Sends an inference request and waits for its only response.
        infer(request: &InferRequest) -> InferResponse;
    }

    /// As [`infer`](Self::infer) for a request with borrowed tensors: returns after no connection
    /// reads them any more.
    pub fn infer_borrowed(&self, request: InferRequest, borrow: &Borrow) -> Result<InferResponse> {
        self.driver.run(async {
            let response = self.inner.infer(&request).await;
            drop(request);
            self.inner.settle(borrow).await;
            response
        })
    }

    /// Sends an inference request in the background. The callback runs on a thread of this client,
    /// after no connection reads what was borrowed of `borrow` any more. It may make calls of its
    /// own.
    pub fn infer_async(
        &self,
        request: InferRequest,
        borrow: Borrow,
        callback: impl FnOnce(Result<InferResponse>) + Send + 'static,
    ) -> Result<Call> {
        self.start(request, borrow, (CallCompletion::Callback, callback))
    }

    /// As [`BlockingClient::infer_async`], for a `then` that only passes the response on: it runs on the
    /// runtime, so that it must neither block, nor make calls, nor drop the client.
    pub fn infer_then(
        &self,
        request: InferRequest,
        borrow: Borrow,
        then: impl FnOnce(Result<InferResponse>) + Send + 'static,
    ) -> Result<Call> {
        self.start(request, borrow, (CallCompletion::Direct, then))
    }

    fn start(
        &self,
        request: InferRequest,
        borrow: Borrow,
        completion: (CallCompletion, impl FnOnce(Result<InferResponse>) + Send + 'static),
    ) -> Result<Call> {
        let (client, settling) = (self.background.clone(), self.background.clone());
        let call = async move { (client.infer(&request).await, ()) };
        let after = async move { settling.settle(&borrow).await };
        self.calls.start(call, after, completion)
    }

    /// Opens a stream of inference requests; gRPC only.
    pub fn stream(&self) -> Result<Stream> {
        let (sender, receiver) = wait_for(self.background.stream())?.split();
        Ok(Stream {
            sender: Mutex::new(sender.map(Arc::new)),
            receiver: tokio::sync::Mutex::new(receiver),
            deadline: self.deadline,
            url: self.url().to_owned(),
        })
    }
}

/// See [`v2::Stream`]. One thread may send while another receives. Dropping it cancels what is
/// outstanding.
pub struct Stream {
    sender: Mutex<Option<Arc<v2::StreamSender>>>,
    receiver: tokio::sync::Mutex<v2::StreamReceiver>,
    deadline: Option<Duration>,
    url: String,
}

impl Stream {
    /// Queues a request.
    pub fn send(&self, request: &InferRequest) -> Result<()> {
        let sender = self.sender.lock().clone();
        let Some(sender) = sender else {
            return Err(
                Error::invalid("the stream's requests were closed").with_asked(|| self.url.clone())
            );
        };
        wait_for(self.limited("the server does not read the stream", sender.send(request)))
    }

    /// No more requests follow; the outstanding responses still come.
    pub fn close_requests(&self) {
        *self.sender.lock() = None;
    }

    /// The next response, or `None` when the stream has ended; waits at most as long as the
    /// deadline of the settings.
    pub fn next(&self) -> Result<Option<InferResponse>> {
        let next = async { self.receiver.lock().await.next().await.transpose() };
        wait_for(self.limited("no response on the stream", next))
    }

    /// As [`next`](Self::next) with another limit.
    pub fn next_within(&self, limit: Option<Duration>) -> Result<Option<InferResponse>> {
        let next = async { self.receiver.lock().await.next().await.transpose() };
        wait_for(limited(limit, "no response on the stream", &self.url, next))
    }

    async fn limited<T>(&self, what: &str, future: impl Future<Output = Result<T>>) -> Result<T> {
        limited(self.deadline, what, &self.url, future).await
    }
}

async fn limited<T>(
    limit: Option<Duration>,
    what: &str,
    url: &str,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(limit) = limit else { return future.await };
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| {
        let text = format!("deadline exceeded: {what} within {} seconds", limit.as_secs_f64());
        Err(Error::new(Kind::DeadlineExceeded, text).with_asked(|| url.to_owned()))
    })
}
