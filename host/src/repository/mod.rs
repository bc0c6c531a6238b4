//! (to come)
pub mod labels;
