//! The interface between trtserver and its backends.
pub mod abi;
