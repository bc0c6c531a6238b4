//! Executes one batch on a local instance, and fails the requests that the backend does not respond
//! to.

use super::alignment::align_inputs;
use super::frame::FrameHold;
use super::gpu::InputCopies;
use super::views::{TensorNames, ViewOptions};
use crate::model::LocalInstance;
use std::sync::Arc;
use trtserver_base::error::{Code, Error};
use trtserver_base::stats::BatchExecution;
use trtserver_request::{InferRequest, ModelSignature};

/// Names and model of an instance, for errors and views.
pub struct Runner<'a> {
    /// Name of the instance.
    pub name: &'a str,
    pub signature: &'a ModelSignature,
    pub names: &'a Arc<TensorNames>,
}

impl Runner<'_> {
    /// Puts the inputs where the backend takes them; `copied` are those of a batch that was copied
    /// ahead. Requests whose inputs find no place are failed and removed; false if none is left.
    pub fn place_inputs(
        &self,
        instance: &LocalInstance,
        requests: &mut Vec<InferRequest>,
        copied: Option<InputCopies>,
    ) -> bool {
        let align = instance.backend().facts.align;
        match (instance.gpu().filter(|gpu| gpu.takes_inputs()), copied) {
            (None, _) => align_inputs(requests, align),
            (Some(gpu), None) => gpu.place_inputs(requests, self.signature, align),
            (Some(gpu), Some(copied)) => gpu.use_copies(requests, &copied),
        }
        !requests.is_empty()
    }

    /// Executes `requests`, whose inputs are placed, as batch `id`. The backend may respond later.
    pub fn execute(
        &self,
        instance: &mut LocalInstance,
        hold: &mut FrameHold,
        id: u64,
        requests: &mut Vec<InferRequest>,
        execution: &Arc<BatchExecution>,
    ) {
        let options =
            ViewOptions { signature: self.signature, names: self.names, gpu: instance.gpu() };
        hold.fill(id, requests, &options, execution);
        match instance.execute(hold) {
            Err(e) => hold.frame().fail(&self.named(e)),
            Ok(()) => self.fail_unanswered(hold, &instance.backend().facts.name),
        }
        hold.recycle();
    }

    /// Fails a batch during which the host itself panicked; the instance continues.
    pub fn fail_after_panic(&self, hold: &mut FrameHold, requests: &mut Vec<InferRequest>) {
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

    /// Fails what the backend neither finished nor retained when `execute` returned.
    fn fail_unanswered(&self, hold: &FrameHold, backend: &str) {
        let failed = hold.frame().fail_unanswered(&|_| {
            Error::internal(format!(
                "model '{}': the backend '{backend}' returned without responding to the request",
                self.signature.model
            ))
        });
        if failed > 0 {
            tracing::error!(
                "instance {}: the backend returned without a response to {failed} request(s)",
                self.name
            );
        }
    }

    /// Replaces an empty error text of a backend.
    fn named(&self, e: Error) -> Error {
        if !e.message.is_empty() || e.code == Code::Cancelled {
            return e;
        }
        Error::new(e.code, format!("model '{}': execution failed", self.signature.model))
    }
}
