//! (placeholder)
#[derive(Debug)]
pub struct Labels;
