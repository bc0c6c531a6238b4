//! The safe side for Rust authors: three traits, the views they receive, and
//! [`crate::export_backend!`].
//!
//! | | created by | lives until | threads |
//! |---|---|---|---|
//! | [`Backend`] | [`Backend::open`], once per configured name | its last model is closed | shared |
//! | [`Model`] | [`Model::open`], once per version of a model | its last instance is closed | shared |
//! | [`Instance`] | [`Instance::open`], as often as configured | the version is unloaded | its own, or any, one at a time: [`Instance::ANY_THREAD`] |
//!
//! What `open` and `execute` receive is borrowed for the call. What may be stored: a [`Scope`]
//! (clone it), a [`Responder`] (see [`Request::detach`]), and metrics.
//!
//! An error from `open` fails the load and appears in the model's status. An error from
//! [`Instance::execute`] goes to every request of the batch that is not finished yet; so does a
//! panic, with its message. A request that is left unfinished fails with an error that says so.

mod batch;
mod context;
mod device;
mod dtype;
mod error;
#[doc(hidden)]
pub mod export;
mod gather;
mod host;
mod inference;
mod info;
mod metrics;
mod probe;
mod request;
mod responder;
mod response;
mod scope;
mod tensor;
mod value;

pub use crate::abi::extensions::BatchSize;
pub use crate::abi::types::{Backlog, Buf, Memory};
pub use batch::Batch;
pub use context::{
    BackendContext, Completion, ConfigPatch, InstanceContext, Kind, ModelContext, TensorDecl,
};
pub use device::{Device, Event, HostMemory, Stream, wait_ready};
pub use dtype::{Dtype, Element, elements};
pub use error::{Code, Error};
pub use gather::GatheredTensor;
pub use inference::{InferenceCall, InferenceRequest, InferenceResponse, ModelStatus};
pub use info::{BackendInfo, Extension, Platform, PreferredGroup};
pub use metrics::{Counter, Gauge, Histogram};
pub use probe::{DirEntry, ModelProbe};
pub use request::{Request, RequestKey, RequestedOutput};
pub use responder::Responder;
pub use response::Response;
pub use scope::Scope;
pub use tensor::{Strings, Tensor, strings_in};
pub use value::{Params, Value};

use std::marker::PhantomData;
use std::sync::Arc;

/// A framework, from which models are opened; shared by threads, and open until its last model is
/// closed.
pub trait Backend: Sized + Send + Sync + 'static {
    /// What it opens.
    type Model: Model<Backend = Self>;

    /// What the library says of itself before anything is open.
    const INFO: BackendInfo;

    /// Opens the backend, with the first model that uses it. An error fails that load.
    fn open(context: &BackendContext) -> Result<Self, Error>;

    /// The framework and its version, for operators: "ONNX Runtime 1.31.1". Called after `open`.
    fn runtime(&self) -> String {
        String::new()
    }

    /// The instance kinds of [`Backend::INFO`] that the backend opens on this machine, if its
    /// framework decides. Called after `open`. `KIND_AUTO` chooses among them. A configuration that
    /// names another kind of `INFO` reaches [`Model::open`], which refuses it with the reason.
    fn instance_kinds(&self) -> &'static [Kind] {
        Self::INFO.instance_kinds
    }

    /// Looks for a model of one of the platforms in a version directory, for configurations that
    /// leave platform or model file to be detected. Returns its file or directory, one of
    /// [`ModelProbe::entries`]; `None` if the default file of the platform decides, as it does
    /// without this function. An error says why there is none; its text goes on after "no model of
    /// platform 'P': ".
    ///
    /// The backend need not be open. Look at names, and at most at the beginnings of files: do not
    /// load the framework.
    fn model_probe<'a>(probe: ModelProbe<'a>) -> Result<Option<&'a str>, Error> {
        let _ = probe;
        Ok(None)
    }

    /// Reads a model and returns what its configuration omits. May be slow.
    fn autocomplete(&self, model: &ModelContext) -> Result<Completion, Error> {
        let _ = model;
        Ok(Completion::default())
    }
}

/// One version of a model: what its instances share.
pub trait Model: Sized + Send + Sync + 'static {
    /// Whose models they are.
    type Backend: Backend<Model = Self>;
    /// What executes its batches.
    type Instance: Instance<Model = Self>;

    /// Opens a version. An error fails its load; its text goes to the operator.
    fn open(backend: &Arc<Self::Backend>, context: &ModelContext) -> Result<Self, Error>;
}

/// Executes batches. It is opened, used and dropped on one thread, so it need not be `Send`.
pub trait Instance: Sized + 'static {
    /// Whose instances they are.
    type Model: Model<Instance = Self>;

    /// Whether the host may execute the instance on threads other than its own, one at a time; it
    /// is still opened and dropped on its own. The host then executes models whose batches take
    /// microseconds on the thread that read the request, which saves two context switches.
    const ANY_THREAD: AnyThread<Self> = AnyThread::NO;

    /// Opens an instance on its thread. An error fails the load of the version.
    fn open(model: &Arc<Self::Model>, context: &InstanceContext) -> Result<Self, Error>;

    /// Finishes every request of the batch, now or (see [`Request::detach`]) later.
    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error>;

    /// Called once after `open`. The handler runs on another thread, also during `execute`, and
    /// must not block: it is called when a request is cancelled that `execute` has received and
    /// that is not finished, also a detached one. [`Request::is_cancelled`] is true by then. A
    /// request cancelled before `execute` received it is not notified, so check `is_cancelled` once
    /// after storing the key where the handler finds it.
    fn cancel_handler(&self) -> Option<CancelHandler> {
        None
    }

    /// Sizes of batches that the instance is prepared for, ascending, if it pads batches of other
    /// sizes. Called once after `open`. The host forms batches with regard to them, and may give
    /// the instance batches of any size all the same.
    fn batch_sizes(&self) -> Vec<BatchSize> {
        Vec::new()
    }
}

/// See [`Instance::ANY_THREAD`]: `YES` is for types that are `Send`.
pub struct AnyThread<I>(bool, PhantomData<fn(I)>);

impl<I> AnyThread<I> {
    /// Only the thread of the instance executes it.
    pub const NO: Self = Self(false, PhantomData);

    pub(crate) const fn allowed(&self) -> bool {
        self.0
    }
}

impl<I: Send> AnyThread<I> {
    /// Any thread may execute it, one at a time.
    pub const YES: Self = Self(true, PhantomData);
}

/// See [`Instance::cancel_handler`]. The key is that of [`Request::key`].
pub type CancelHandler = Box<dyn Fn(RequestKey) + Send + Sync>;
