//! Unit tests of `counters.rs`.
