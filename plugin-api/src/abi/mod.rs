//! The binary interface: `#[repr(C)]` types and the two tables, mirrored one to one by
//! `include/trtserver/*.h`.
//!
//! Rules that every type keeps, so that C, C++ and Rust agree: integers have a fixed width; no Rust
//! enums or `bool`s (a foreign value outside an enum is undefined behaviour, outside a range of
//! numbers it is merely unknown); no struct by value above 16 bytes; no implicit padding; every
//! string has a length and a terminating NUL. A descriptor begins with its size and ends in
//! reserved words, which are zero until a later minor version names them; so size, alignment and
//! offsets never change within a major version.
//!
//! # Versions
//!
//! Host and backend must agree on [`ABI_MAJOR`]; a backend built for minor version m runs on every
//! host of minor version m or later, without being rebuilt. The two core tables
//! ([`host::HostTable`], [`backend::BackendTable`]) contain what every host and every backend has,
//! and do not change within a major version. Everything optional is in [`extensions`].
//!
//! To add something:
//!
//! - Functions: a new extension, or entries at the end of one and its version raised. No new minor
//!   version.
//! - A field of a descriptor ([`request::Request`], [`request::Batch`], [`descriptors`]): name a
//!   reserved word, in the C header by its place and here by a method of the struct, and raise
//!   [`ABI_MINOR`]. The field list keeps `reserved`: abi_stable compares it, and would refuse
//!   existing backends. Zero must mean the former behaviour.
//! - A flag or constant: raise [`ABI_MINOR`] when backends may rely on it.
//! - Anything else is a new major version.

pub mod backend;
pub mod descriptors;
pub mod extensions;
pub mod host;
pub mod inference;
pub mod request;
pub mod types;

/// Major number of this interface. Host and backend must agree on it.
pub const ABI_MAJOR: u32 = 1;
/// Minor number. A backend runs on hosts whose minor number is at least the backend's.
pub const ABI_MINOR: u32 = 0;
/// Name of the entry symbol; see [`backend::BackendMain`].
pub const BACKEND_MAIN: &str = "trts_backend_main";
