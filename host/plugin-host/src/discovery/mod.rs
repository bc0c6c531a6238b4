//! Which backends this server has, in which versions, and which of them a model gets.
//!
//! Discovery searches plugin files; the inventory is what it finds. A model probe is a backend's
//! check which file or directory of a version is a model of one of its platforms.

pub mod adapters;
pub mod backends;
pub mod candidate;
pub mod directories;
pub mod inventory;
pub mod manifest;
pub mod version;
