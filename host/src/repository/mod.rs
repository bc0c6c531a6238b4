//! (to come)
pub mod config;
pub mod labels;
pub mod policy;
