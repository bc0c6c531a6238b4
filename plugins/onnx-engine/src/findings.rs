//! What runs have shown of a model version: outputs whose shapes are not what file and
//! configuration say.

use crate::check::TensorSlot;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::expect_configured;
use trtserver_framework::shape::shape_fits;
use trtserver_framework::types::shape_text;
use trtserver_plugin_api::author::Scope;

/// Shared by the sessions of a version, so that each is logged once.
#[derive(Debug, Default)]
pub struct RunFindings {
    /// An output had another shape than its block: no output is written into a block of the
    /// declared size.
    wrong_shape: AtomicBool,
    /// An output has not as many rows as its run, or another shape than the host accepts for a
    /// batch.
    unmergeable: AtomicBool,
    /// It was logged that the file declares a wrong shape.
    declared_wrong: AtomicBool,
}

impl RunFindings {
    /// Whether outputs of a known shape are written into blocks of the host.
    pub fn preallocates(&self) -> bool {
        !self.wrong_shape.load(Ordering::Relaxed)
    }

    /// Whether several requests may be executed in one run.
    pub fn merges(&self) -> bool {
        !self.unmergeable.load(Ordering::Relaxed)
    }

    /// A block had another shape than the output. Which one, the next run without blocks shows.
    pub fn stop_preallocating(&self) {
        self.wrong_shape.store(true, Ordering::Relaxed);
    }

    /// An output whose rows cannot be given to the requests of a batch.
    pub fn stop_merging(&self, log: &Scope, fault: &PluginFault) {
        if !self.unmergeable.swap(true, Ordering::Relaxed) {
            log.warning(format_args!("{fault}; requests are executed one by one from now on"));
        }
    }

    /// Checks the shape of an output that has the rows of its run.
    ///
    /// # Errors
    /// The user has configured another shape.
    pub fn check_shape(
        &self,
        log: &Scope,
        (model, slot): (&str, &TensorSlot),
        shape: &[i64],
    ) -> Result<(), PluginFault> {
        if slot.flat || slot.scalar {
            return Ok(());
        }
        expect_configured(model, slot, shape)?;
        if slot.unranked || shape_fits(&slot.dims, shape) {
            return Ok(());
        }
        if !self.declared_wrong.swap(true, Ordering::Relaxed) {
            log.warning(format_args!(
                "model '{model}', output '{}': the file declares shape {} and a run returned {}: the declaration is \
                 wrong, and outputs are returned as they are from now on; to declare it write the output into the \
                 model configuration",
                slot.name,
                shape_text(&slot.dims),
                shape_text(shape)
            ));
        }
        self.stop_preallocating();
        // The host gives requests their rows of a batch only in the configured shape.
        self.unmergeable.store(true, Ordering::Relaxed);
        Ok(())
    }
}
