//! Unit tests of `page.rs`.
