//! A model version.

use crate::backend::TensorFlow;
use std::sync::Arc;
use trtserver_plugin_api::author::{Batch, Error, Instance, InstanceContext, Model, ModelContext};

pub struct TensorFlowModel;

impl Model for TensorFlowModel {
    type Backend = TensorFlow;
    type Instance = TensorFlowInstance;

    fn open(backend: &Arc<TensorFlow>, context: &ModelContext) -> Result<Self, Error> {
        let runtime = backend.runtime_library()?;
        Err(Error::unsupported(format_args!(
            "model '{}': models cannot be executed yet with TensorFlow {}",
            context.name(),
            runtime.version
        )))
    }
}

pub struct TensorFlowInstance;

impl Instance for TensorFlowInstance {
    type Model = TensorFlowModel;

    fn open(_: &Arc<TensorFlowModel>, _: &InstanceContext) -> Result<Self, Error> {
        Ok(Self)
    }

    fn execute(&mut self, _: &Batch<'_>) -> Result<(), Error> {
        Err(Error::internal("not opened"))
    }
}
