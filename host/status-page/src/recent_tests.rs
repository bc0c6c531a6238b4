//! Unit tests of `recent.rs`.
