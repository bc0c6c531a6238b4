//! backends (to come)
pub mod find;
pub mod text;
