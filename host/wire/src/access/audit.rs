//! The audit line of a control call: who did what, from where, with what outcome. Lines have the
//! target `audit` and the level of information.

use super::endpoint::ControlAction;
use super::refusal::AccessRefusal;
use super::{CallerProtocol, names::CallerGrant};
use crate::connections::ConnectionPeer;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;

/// How a control call over gRPC ended, where its gRPC status does not say so: an extension of the
/// response.
#[derive(Clone)]
pub struct ControlOutcome(pub Result<(), String>);

impl ControlOutcome {
    pub fn from_result<T>(result: &Result<T, Error>) -> Self {
        Self(result.as_ref().map(|_| ()).map_err(|error| error.message.clone()))
    }

    pub fn attach<M>(self, mut response: tonic::Response<M>) -> tonic::Response<M> {
        response.extensions_mut().insert(self);
        response
    }
}

/// Refusals of callers without a name have so many lines a second: they cost their senders nothing.
const MAX_UNKNOWN: u64 = 10;

/// Logs the outcome of a control call: `Err` is the error that its client got.
pub fn log_control(
    caller: Option<&CallerGrant>,
    peer: &ConnectionPeer,
    action: &ControlAction<'_>,
    outcome: Result<(), &str>,
) {
    let name = caller.map_or("-", |caller| &caller.name);
    match outcome {
        Ok(()) => log_line(name, peer, action, "done"),
        Err(error) => log_line(name, peer, action, &format!("failed: {error}")),
    }
}

/// Logs a control call that was refused before it was read.
pub fn log_refused(peer: &ConnectionPeer, action: &ControlAction<'_>, refusal: &AccessRefusal) {
    let name = match refusal {
        AccessRefusal::MissingScope { name, .. }
        | AccessRefusal::TooFast { name, .. }
        | AccessRefusal::TooMany { name, .. } => name,
        _ if !UNKNOWN.take() => return,
        _ => "-",
    };
    let outcome = format!("refused: {}", refusal.message(CallerProtocol::Http));
    log_line(name, peer, action, &outcome);
}

fn log_line(name: &str, peer: &ConnectionPeer, action: &ControlAction<'_>, outcome: &str) {
    let ControlAction { what, subject } = action;
    let subject = if subject.is_empty() { String::new() } else { format!(" '{subject}'") };
    tracing::info!(target: "audit", "audit: {name} from {}: {what}{subject}: {outcome}", peer.address);
}

/// Lines of the current second.
struct LineBudget {
    second: AtomicU64,
    lines: AtomicU64,
}

static UNKNOWN: LineBudget = LineBudget { second: AtomicU64::new(0), lines: AtomicU64::new(0) };

impl LineBudget {
    /// Whether a line may be written. Exact enough: lines at the turn of a second may count twice.
    fn take(&self) -> bool {
        let now = now_ns() / 1_000_000_000;
        if self.second.swap(now, Relaxed) != now {
            self.lines.store(0, Relaxed);
        }
        self.lines.fetch_add(1, Relaxed) < MAX_UNKNOWN
    }
}
