//! `TRITONSERVER_Server`: the token with which a model's backend reaches other models.

use super::model::Model;
use crate::fault::{Fault, Result};
use crate::handles::{Kind, Live, Object};
use std::sync::OnceLock;

pub struct Server {
    /// The model whose token it is; set before a backend sees it.
    pub model: OnceLock<Live<Model>>,
}

impl Server {
    /// # Errors
    /// The model is not open yet.
    pub fn model(&self) -> Result<Live<Model>> {
        self.model.get().copied().ok_or_else(|| Fault::internal("the server's token has no model"))
    }
}

impl Object for Server {
    const KIND: Kind = Kind::Server;
}

/// `TRITONSERVER_InferenceTrace`: none exists.
pub struct Trace;

impl Object for Trace {
    const KIND: Kind = Kind::Trace;
}
