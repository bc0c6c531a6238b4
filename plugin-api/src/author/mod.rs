//! The safe side for Rust authors: three traits, the views they get, and [`crate::export_backend!`].
//!
//! | | made by | lives | threads |
//! |---|---|---|---|
//! | [`Backend`] | [`Backend::open`], once per configured name | until the last model is closed | shared |
//! | [`Model`] | [`Model::open`], once per version of a model | until its last instance is closed | shared |
//! | [`Instance`] | [`Instance::open`], as often as configured | until the version is unloaded | one: its own; or one at a time, see [`Instance::ANY_THREAD`] |
//!
//! Whatever `open` and `execute` get is lent for the call. What may be kept: a [`Scope`] (clone it), an
//! [`OwnedReply`] (see [`Call::detach`]), and metrics.
//!
//! An error from `open` fails the load and shows in the model's status. An error from
//! [`Instance::execute`] goes to every call of the batch that has no answer yet; so does a panic, with
//! its text. A call that is left unanswered gets an error that says so. Nothing here aborts the process.

mod call;
mod context;
mod describe;
mod dtype;
mod error;
#[doc(hidden)]
pub mod export;
mod host;
mod merge;
mod reply;
mod response;
mod scope;
mod tensor;
mod value;

pub use call::{Batch, Call, CallKey, WantedOutput};
pub use context::{BackendContext, ConfigPatch, InstanceContext, Kind, ModelContext, TensorDecl};
pub use describe::{Description, Platform, Preferred};
pub use dtype::{Dtype, Element, elements};
pub use error::{Code, Error};
pub use merge::GatheredTensor;
pub use reply::OwnedReply;
pub use response::Response;
pub use scope::{Counter, Gauge, Scope};
pub use tensor::{Strings, Tensor, strings_in};
pub use value::{Params, Value};

use std::marker::PhantomData;
use std::sync::Arc;

/// A framework. See the module text for lifetimes and threads.
pub trait Backend: Sized + Send + Sync + 'static {
    type Model: Model<Backend = Self>;

    /// Facts that hold before anything is open.
    const ABOUT: Description;

    fn open(context: &BackendContext) -> Result<Self, Error>;

    /// The framework behind it and its version, as `describe` shows it: "ONNX Runtime 1.31.1". Asked after `open`.
    fn runtime(&self) -> String {
        String::new()
    }

    /// Looks into a model and says what its configuration leaves out. May be slow.
    fn complete(&self, model: &ModelContext) -> Result<Option<ConfigPatch>, Error> {
        let _ = model;
        Ok(None)
    }
}

/// One version of a model: what its instances share.
pub trait Model: Sized + Send + Sync + 'static {
    type Backend: Backend<Model = Self>;
    type Instance: Instance<Model = Self>;

    fn open(backend: &Arc<Self::Backend>, context: &ModelContext) -> Result<Self, Error>;
}

/// What executes. It is opened, used and dropped on one thread, so it need not be `Send`.
pub trait Instance: Sized + 'static {
    type Model: Model<Instance = Self>;

    /// Whether the host may execute an instance on threads other than its own, one at a time; it is still opened and
    /// dropped on its own. The host then spares models whose batches take microseconds the way to another thread and back.
    const ANY_THREAD: AnyThread<Self> = AnyThread::NO;

    fn open(model: &Arc<Self::Model>, context: &InstanceContext) -> Result<Self, Error>;

    /// Answers every call of the batch, now or (see [`Call::detach`]) later.
    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error>;

    /// Asked once after `open`: what to do, on any thread and without blocking, when a call is
    /// cancelled that was accepted and has not ended, also one that was detached. [`Call::is_cancelled`]
    /// is true by then. A call that was cancelled before `execute` got it is not told of, so look at
    /// it once after its key is where the canceller finds it.
    fn canceller(&self) -> Option<Canceller> {
        None
    }
}

/// See [`Instance::ANY_THREAD`]: `YES` is for types that are `Send`.
pub struct AnyThread<I>(bool, PhantomData<fn(I)>);

impl<I> AnyThread<I> {
    pub const NO: Self = Self(false, PhantomData);

    pub(crate) const fn allowed(&self) -> bool {
        self.0
    }
}

impl<I: Send> AnyThread<I> {
    pub const YES: Self = Self(true, PhantomData);
}

/// See [`Instance::canceller`]. The key is that of [`Call::key`].
pub type Canceller = Box<dyn Fn(CallKey) + Send + Sync>;
