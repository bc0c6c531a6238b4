//! The binary interface itself: `#[repr(C)]` types and the two tables, mirrored one to one by `include/trtserver/*.h`.
//!
//! Rules that every type here keeps (they are what lets C, C++ and Rust meet):
//! fixed-width integers only, no Rust enums or `bool`s (a foreign value outside an enum is undefined
//! behaviour, outside a range of numbers it is merely unknown), no struct by value above 16 bytes,
//! no implicit padding, every string both counted and NUL-terminated.
//! A struct that may grow begins with its size and ends in reserved words, which are zero until a
//! later minor version names them; so size, alignment and offsets never change within a major version.

pub mod call;
pub mod describe;
pub mod host;
pub mod plugin;
pub mod types;

/// Major number of this interface. Host and plugin must agree on it exactly.
pub const ABI_MAJOR: u32 = 1;
/// Minor number. A plugin runs on any host whose minor number is at least the plugin's.
pub const ABI_MINOR: u32 = 0;
/// Name of the one symbol that C and C++ plugins export; see [`plugin::PluginMain`].
pub const PLUGIN_MAIN: &str = "trts_plugin_main";
