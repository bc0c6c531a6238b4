//! Unit tests of `configuration.rs`.
