//! What every front end works with.

use crate::config::{ControlMode, Settings};
use crate::error::{Code, Error};
use crate::repository::lifecycle::{IndexEntry, ModelControl};
use crate::repository::{LookupError, ModelTable, Served};
use crate::request::Sequence;
use crate::state::{Phase, ServerState};
use crate::stats::{FailureReason, Span};
use crate::sync::Mutex;
use arc_swap::ArcSwapOption;
use std::sync::Arc;

/// Shared by all connections; cheap to clone as an `Arc`.
pub struct Context {
    pub settings: Arc<Settings>,
    pub models: Arc<ModelTable>,
    pub state: Arc<ServerState>,
    pub endpoints: EndpointStats,
    /// Loading and unloading by request, where that is allowed; not before the first models are loaded.
    pub control: ArcSwapOption<ModelControl>,
}

/// Counters of the v1 endpoints that status reports (contract/v1 §9.2).
#[derive(Default)]
pub struct EndpointStats {
    pub status: EndpointSpan,
    pub health: EndpointSpan,
    pub profile: EndpointSpan,
    pub model_control: EndpointSpan,
    pub shm_control: EndpointSpan,
    pub repository: EndpointSpan,
}

/// One endpoint's counter. These calls are rare: a lock is good enough.
#[derive(Default)]
pub struct EndpointSpan(Mutex<Span>);

impl EndpointSpan {
    pub fn add(&self, ns: u64) {
        self.0.lock().add(ns);
    }

    pub fn get(&self) -> Span {
        *self.0.lock()
    }
}

impl Context {
    /// Readiness as both generations report it (contract/v1 §3.3, v2 §1.6).
    pub fn is_ready(&self) -> bool {
        self.state.phase() == Phase::Ready
            && (!self.settings.strict_readiness || self.models.all_ready())
    }

    /// What loads and unloads models by request.
    ///
    /// # Errors
    /// The mode does not allow that, or the server is not ready.
    pub fn control(&self) -> Result<Arc<ModelControl>, Error> {
        if self.settings.control_mode != ControlMode::Explicit {
            return Err(no_explicit_control());
        }
        self.require_ready()?;
        self.control.load_full().ok_or_else(|| Error::unavailable("Server not ready"))
    }

    /// Refuses what needs models outside the READY phase.
    pub fn require_ready(&self) -> Result<(), Error> {
        if self.state.phase() == Phase::Ready {
            Ok(())
        } else {
            Err(Error::unavailable("Server not ready"))
        }
    }

    /// The same for inference by `served`: while the server stops, a sequence that has begun may go on (contract/v2 §4.1).
    pub fn require_open(&self, served: &Served, sequence: &Sequence) -> Result<(), Error> {
        match self.state.phase() {
            Phase::Exiting if served.scheduler.has_sequence(sequence) => Ok(()),
            _ => self.require_ready(),
        }
    }

    /// Health and status calls while exiting.
    pub fn refuse_when_exiting(&self) -> Result<(), Error> {
        if self.state.phase() == Phase::Exiting {
            Err(Error::unavailable("Server exiting"))
        } else {
            Ok(())
        }
    }
}

/// What the repositories hold: their directories as they are now, where models can be loaded from them.
///
/// # Errors
/// A repository cannot be read.
pub async fn list(ctx: &Context) -> Result<Vec<IndexEntry>, Error> {
    let Some(control) = ctx.control.load_full() else {
        let of = |(name, model)| IndexEntry { name, ambiguous: false, model: Some(model) };
        return Ok(ctx.models.all().into_iter().map(of).collect());
    };
    // Reading directories may take its time.
    let listed = tokio::task::spawn_blocking(move || control.index()).await;
    listed.unwrap_or_else(|e| Err(Error::internal(format!("the repositories were not read: {e}"))))
}

/// The answer to load and unload on request while the repository is read once (contract/v2 trap 36:
/// the words speak of polling in that mode too, and clients know them).
pub fn no_explicit_control() -> Error {
    Error::unavailable("explicit model load / unload is not allowed if polling is enabled")
}

/// As what a request counts that was refused before it was queued: its caller may have left in the middle of it.
pub fn refusal(error: &Error) -> FailureReason {
    match error.code {
        Code::Cancelled => FailureReason::Canceled,
        _ => FailureReason::Other,
    }
}

/// v2's answer to a failed look-up: NOT_FOUND, or UNAVAILABLE for a version that exists.
pub fn v2_missing(missing: LookupError) -> Error {
    missing.error()
}
