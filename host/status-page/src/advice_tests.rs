//! Unit tests of `advice.rs`.
