//! `TRITONBACKEND_ResponseFactory`: sends responses after the request was released.

use super::reply::Reply;
use crate::handles::{Kind, Live, Object};

pub struct Factory {
    /// One reference of it.
    pub reply: Live<Reply>,
}

impl Object for Factory {
    const KIND: Kind = Kind::Factory;
}
