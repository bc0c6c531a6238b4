//! The audit line of a control call: who did what, from where, with what outcome. Lines have the
//! target `audit` and the level of information.

use super::endpoint::ControlAction;
use super::refusal::AccessRefusal;
use super::{CallerProtocol, names::CallerGrant};
use crate::connections::ConnectionPeer;
use trtserver_base::access_stats::AccessStats;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;

/// How a control call over gRPC ended, where its gRPC status does not say so: an extension of the
/// response.
#[derive(Clone)]
pub struct ControlOutcome {
    pub failure: Option<String>,
}

impl ControlOutcome {
    pub fn from_result<T>(result: &Result<T, Error>) -> Self {
        Self { failure: result.as_ref().err().map(|error| error.message.clone()) }
    }

    pub fn attach<M>(self, mut response: tonic::Response<M>) -> tonic::Response<M> {
        response.extensions_mut().insert(self);
        response
    }
}

/// Logs the outcome of a control call: `failure` is the error that its client got.
pub fn log_control(
    caller: Option<&CallerGrant>,
    peer: &ConnectionPeer,
    action: &ControlAction<'_>,
    failure: Option<&str>,
) {
    let name = caller.map_or("-", |caller| &caller.name);
    match failure {
        None => log_line(name, peer, action, "done"),
        Some(error) => log_line(name, peer, action, &format!("failed: {error}")),
    }
}

/// Logs a control call that was refused before it was served. `stats` limits the lines of callers
/// without a name.
pub fn log_refused(
    stats: &AccessStats,
    peer: &ConnectionPeer,
    action: &ControlAction<'_>,
    refusal: &AccessRefusal,
) {
    let name = match refusal {
        AccessRefusal::MissingScope { name, .. }
        | AccessRefusal::TooFast { name, .. }
        | AccessRefusal::TooMany { name, .. } => name,
        _ if !stats.take_unnamed_line(now_ns()) => return,
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
