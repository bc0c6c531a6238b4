//! Which backends this server has, in which versions, and which of them a model gets.

pub mod adapters;
pub mod backends;
pub mod candidate;
pub mod directories;
pub mod inventory;
pub mod manifest;
pub mod version;
