//! `TRITONBACKEND_ModelInstanceResponseStatistics`: times of one response of a decoupled model.

use super::factory::ResponseFactory;
use super::instance::InstanceObject;
use crate::handles::{ObjectKind, TypedObject};
use std::sync::atomic::{AtomicPtr, AtomicU64};

#[derive(Default)]
pub struct ResponseStatistics {
    pub instance: AtomicPtr<InstanceObject>,
    pub factory: AtomicPtr<ResponseFactory>,
    pub start_ns: AtomicU64,
    pub output_start_ns: AtomicU64,
    pub end_ns: AtomicU64,
}

impl TypedObject for ResponseStatistics {
    const KIND: ObjectKind = ObjectKind::ResponseStatistics;
}
