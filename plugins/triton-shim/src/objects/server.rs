//! `TRITONSERVER_Server`: the token with which a model's backend reaches other models.

use super::model::ModelObject;
use crate::fault::{Result, TritonFault};
use crate::handles::{LiveObject, ObjectKind, TypedObject};
use std::sync::OnceLock;

pub struct ServerToken {
    /// The model whose token it is; set before a backend sees it.
    pub model: OnceLock<LiveObject<ModelObject>>,
}

impl ServerToken {
    /// # Errors
    /// The model is not open yet.
    pub fn model(&self) -> Result<LiveObject<ModelObject>> {
        self.model
            .get()
            .copied()
            .ok_or_else(|| TritonFault::internal("the server's token has no model"))
    }
}

impl TypedObject for ServerToken {
    const KIND: ObjectKind = ObjectKind::Server;
}
