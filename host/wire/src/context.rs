//! The state that all frontends share.

use crate::access::{AccessGate, AccessRefusal, CallerGrant, InFlightRequest};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trtserver_base::error::{Code, Error};
use trtserver_base::fair_clients::{ClientTurn, FairClient};
use trtserver_base::request_id;
use trtserver_base::state::{ServerPhase, ServerState};
use trtserver_base::stats::{DurationSum, FailureReason};
use trtserver_config::log::LogControl;
use trtserver_config::{ControlMode, CorsOrigins, ServerSettings};
use trtserver_load_report::LoadReporter;
use trtserver_models::lifecycle::{IndexEntry, ModelControl};
use trtserver_models::{LookupError, ModelTable, OpenVersion};
use trtserver_request::RequestSequence;
use trtserver_request::shared_memory::RegionRegistry;
use trtserver_request_trace::{ActiveTrace, TraceContext, TraceWire, Tracer};
use trtserver_status_page::StatusFeed;

/// Shared by all connections, as an `Arc`. The holders of a name in the auth file have a copy with
/// that name.
#[derive(Clone)]
pub struct FrontendContext {
    pub settings: Arc<ServerSettings>,
    pub models: Arc<ModelTable>,
    pub state: Arc<ServerState>,
    pub endpoints: Arc<EndpointStats>,
    /// Shared memory that clients registered.
    pub shared_memory: Arc<RegionRegistry>,
    /// Loading and unloading on request, where the mode allows it. `None` until the first models
    /// are loaded.
    pub control: Arc<ArcSwapOption<ModelControl>>,
    pub log: LogControl,
    /// What the status page shows.
    pub status: Arc<StatusFeed>,
    /// Decides which requests are traced.
    pub tracer: Arc<Tracer>,
    /// Measures how busy the models are, for load balancers.
    pub load_reporter: Arc<LoadReporter>,
    /// The last number of a stream of v2.
    pub stream_numbers: Arc<AtomicU64>,
    /// Whose pages may call the HTTP listener; `None` on other listeners, if no page may, and once
    /// the request was looked at.
    pub cors: Option<Arc<CorsGate>>,
    /// Checks requests; `None` if all may be served, or were checked.
    pub access: Option<AccessGate>,
    /// Whose requests these are; `None` without an auth file.
    pub caller: Option<Arc<CallerGrant>>,
    /// Whose turns these requests take; `None` where clients are not told apart.
    pub client: Option<Arc<FairClient>>,
}

/// Decides on requests of pages of other origins, before any other check.
pub struct CorsGate {
    pub origins: CorsOrigins,
    /// What serves the requests then.
    pub context: Arc<FrontendContext>,
}

/// Counters of the v1 endpoints, for the status endpoint (docs/protocol/v1.md §9.2).
#[derive(Default)]
pub struct EndpointStats {
    pub status: EndpointSpan,
    pub health: EndpointSpan,
    pub profile: EndpointSpan,
    pub model_control: EndpointSpan,
    pub shm_control: EndpointSpan,
    pub repository: EndpointSpan,
}

/// The counter of one endpoint. Its requests are rare enough for a lock.
#[derive(Default)]
pub struct EndpointSpan(Mutex<DurationSum>);

impl EndpointSpan {
    pub fn add(&self, ns: u64) {
        self.0.lock().add(ns);
    }

    pub fn get(&self) -> DurationSum {
        *self.0.lock()
    }
}

impl FrontendContext {
    /// The turn of a request of this client.
    pub fn client_turn(&self) -> Option<ClientTurn> {
        self.client.clone().map(ClientTurn::new)
    }

    /// A number that no stream of this server had before.
    pub fn next_stream_number(&self) -> u64 {
        self.stream_numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins the trace of a request to `model`, if it is to be traced ([`Tracer::begin`]).
    #[inline]
    pub fn begin_trace(
        &self,
        wire: TraceWire,
        model: &Arc<str>,
        received_ns: u64,
        context: impl FnOnce() -> Option<Box<TraceContext>>,
    ) -> Option<Arc<ActiveTrace>> {
        let trace = self.tracer.begin(wire, model, received_ns, context)?;
        if let Some(caller) = &self.caller {
            trace.set_caller(&caller.name);
        }
        Some(trace)
    }

    /// Refuses inference by a model that the caller may not use. Calls over gRPC were admitted
    /// before their model was known.
    pub fn check_model(&self, model: &str) -> Result<(), Error> {
        match &self.caller {
            None => Ok(()),
            Some(caller) => {
                caller.authorize_inference(model).map_err(|refusal| observed_error(&refusal))
            }
        }
    }

    /// Counts a request of a stream for the limits of its caller, until what is returned is
    /// dropped. The stream itself is not counted.
    pub fn admit_in_stream(&self) -> Result<Option<InFlightRequest>, Error> {
        match &self.caller {
            None => Ok(None),
            Some(caller) => caller.admit().map_err(|refusal| {
                caller.count(&refusal);
                observed_error(&refusal)
            }),
        }
    }

    /// Readiness as both generations report it (docs/protocol/v1.md §3.3, v2 §1.6).
    pub fn is_ready(&self) -> bool {
        self.state.phase() == ServerPhase::Ready
            && !self.state.is_withdrawn()
            && (!self.settings.strict_readiness
                || self.models.all_ready(&self.settings.ready_models))
    }

    /// What loads and unloads models by request.
    ///
    /// # Errors
    /// The control mode is not explicit, or the server is not ready.
    pub fn control(&self) -> Result<Arc<ModelControl>, Error> {
        if self.settings.control_mode != ControlMode::Explicit {
            return Err(no_explicit_control());
        }
        self.require_ready()?;
        self.control.load_full().ok_or_else(|| Error::unavailable("Server not ready"))
    }

    /// Refuses requests to models unless the server is in the READY phase.
    pub fn require_ready(&self) -> Result<(), Error> {
        if self.state.phase() == ServerPhase::Ready {
            Ok(())
        } else {
            Err(Error::unavailable("Server not ready"))
        }
    }

    /// The same for inference by `served`: while the server drains, sequences that have begun may
    /// continue (docs/protocol/v2.md §4.1), and none begins: a START would begin one.
    pub fn require_open(
        &self,
        served: &OpenVersion,
        sequence: &RequestSequence,
    ) -> Result<(), Error> {
        match self.state.phase() {
            ServerPhase::Exiting if !sequence.start && served.scheduler.has_sequence(sequence) => {
                Ok(())
            }
            _ => self.require_ready(),
        }?;
        served.require_selected(sequence).map_err(|missing| missing.error())
    }

    /// Refuses health and status requests while the server drains.
    pub fn refuse_when_exiting(&self) -> Result<(), Error> {
        if self.state.phase() == ServerPhase::Exiting {
            Err(Error::unavailable("Server exiting"))
        } else {
            Ok(())
        }
    }
}

/// The error of a request whose call was admitted, for its client and the access log.
fn observed_error(refusal: &AccessRefusal) -> Error {
    let error = refusal.error();
    if let Some(observer) = request_id::current_observer() {
        observer.request_refused(&error.message);
    }
    error
}

/// The models of the repositories: in explicit mode the directories as they are now, else those of
/// the table, which the server keeps like them.
///
/// # Errors
/// A repository cannot be read.
pub async fn list_repository(ctx: &FrontendContext) -> Result<Vec<IndexEntry>, Error> {
    let explicit = ctx.settings.control_mode == ControlMode::Explicit;
    let Some(control) = ctx.control.load_full().filter(|_| explicit) else {
        let of = |(id, model)| IndexEntry { id, ambiguous: false, model: Some(model) };
        return Ok(ctx.models.all().into_iter().map(of).collect());
    };
    // Reading directories may block.
    let listed = tokio::task::spawn_blocking(move || control.index()).await;
    listed.unwrap_or_else(|e| Err(Error::internal(format!("reading the repositories failed: {e}"))))
}

/// The error for load and unload outside of explicit mode. Known client quirk: the text speaks of
/// polling in mode *none* too, because clients match it (docs/protocol/v2.md §8).
pub fn no_explicit_control() -> Error {
    Error::unavailable("explicit model load / unload is not allowed if polling is enabled")
}

/// The failure reason of a request that was refused before it was queued. Its client may have
/// disconnected while sending it.
pub fn failure_reason(error: &Error) -> FailureReason {
    match error.code {
        Code::Cancelled => FailureReason::Canceled,
        _ => FailureReason::Refused,
    }
}

/// v2's error for a failed look-up: NOT_FOUND, or UNAVAILABLE for a version that exists.
pub fn v2_missing(missing: LookupError) -> Error {
    missing.error()
}
