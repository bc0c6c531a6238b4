//! Unit tests of `feed.rs`.
