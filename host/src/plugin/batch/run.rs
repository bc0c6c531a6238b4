//! One batch through an instance in this process, and what callers are told whom the plugin did not answer.

use super::frame::FrameHold;
use super::views::{Style, TensorNames};
use crate::error::{Code, Error};
use crate::plugin::model::LocalInstance;
use crate::request::{InferRequest, Signature};
use crate::stats::Execution;
use std::sync::Arc;

/// What an instance's thread says of itself and of its model.
pub struct Runner<'a> {
    /// The instance.
    pub name: &'a str,
    pub signature: &'a Signature,
    pub names: &'a Arc<TensorNames>,
}

impl Runner<'_> {
    /// Executes `requests` as batch `id`; the plugin may answer later.
    pub fn execute(
        &self,
        instance: &mut LocalInstance,
        hold: &mut FrameHold,
        id: u64,
        requests: &mut Vec<InferRequest>,
        execution: &Arc<Execution>,
    ) {
        let align = instance.backend().facts.align;
        let style = Style { signature: self.signature, names: self.names, align };
        hold.fill(id, requests, &style, execution);
        match instance.execute(hold) {
            Err(e) => hold.frame().fail(&self.named(e)),
            Ok(()) => self.settle(hold, &instance.backend().facts.name),
        }
        hold.recycle();
    }

    /// The host itself panicked over a batch, which is a fault of ours: its callers are told, and the instance goes on.
    pub fn fault(&self, hold: &mut FrameHold, requests: &mut Vec<InferRequest>) {
        let error = Error::internal(format!(
            "model '{}': the server failed while it executed the request; see its log",
            self.signature.model
        ));
        tracing::error!("instance {}: {error}", self.name);
        hold.frame().fail(&error);
        for request in requests.drain(..) {
            let _ = request.responder.finish(Err(error.clone()));
        }
        hold.recycle();
    }

    /// Ends what a backend that returned has neither answered nor kept.
    fn settle(&self, hold: &FrameHold, backend: &str) {
        let omitted = hold.frame().settle(&|_| {
            Error::internal(format!(
                "model '{}': the backend '{backend}' returned without answering the request",
                self.signature.model
            ))
        });
        if omitted > 0 {
            tracing::error!(
                "instance {}: the backend returned without answering {omitted} request(s)",
                self.name
            );
        }
    }

    /// An empty text from a backend says at least whose it is.
    fn named(&self, e: Error) -> Error {
        if !e.message.is_empty() || e.code == Code::Cancelled {
            return e;
        }
        Error::new(e.code, format!("model '{}': execution failed", self.signature.model))
    }
}
