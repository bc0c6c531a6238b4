//! `TRITONBACKEND_ModelInstanceResponseStatistics`: times of one response of a decoupled model.

use super::factory::Factory;
use super::instance::Instance;
use crate::handles::{Kind, Object};
use std::sync::atomic::{AtomicPtr, AtomicU64};

#[derive(Default)]
pub struct ResponseStatistics {
    pub instance: AtomicPtr<Instance>,
    pub factory: AtomicPtr<Factory>,
    pub start_ns: AtomicU64,
    pub output_start_ns: AtomicU64,
    pub end_ns: AtomicU64,
}

impl Object for ResponseStatistics {
    const KIND: Kind = Kind::ResponseStatistics;
}
