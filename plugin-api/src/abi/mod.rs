//! The binary interface itself: `#[repr(C)]` types and the two tables, mirrored one to one by `include/trtserver/*.h`.
//!
//! Rules that every type here keeps (they are what lets C, C++ and Rust meet):
//! fixed-width integers only, no Rust enums or `bool`s (a foreign value outside an enum is undefined
//! behaviour, outside a range of numbers it is merely unknown), no struct by value above 16 bytes,
//! no implicit padding, every string both counted and NUL-terminated.
//! A struct that may grow begins with its size and ends in reserved words, which are zero until a
//! later minor version names them; so size, alignment and offsets never change within a major version.
//! The two tables have no such words and grow at their end.
//!
//! # Adding something
//!
//! A plugin that was built for minor version m runs on every host of m or later, without being built again. So:
//!
//! - An entry that is null in every host or plugin so far, a new bit of a `flags` word, a new constant: fill it in. That
//!   needs no new minor version if both sides do without where the other has none.
//! - A field in a descriptor (`Call`, `Batch`, `ModelDesc`, `InstanceDesc`, `About`): name one of the reserved words,
//!   in the C header by its place and here by a method on the struct. The field list stays `reserved`: abi_stable
//!   compares it, and would refuse the plugins that exist. Zero must mean what it was like before.
//! - An entry of a table: append it. The struct itself stays as it is, for the same reason; a second one, whose first
//!   field is the first ([`host::HostTable1_1`]), has what is new, and so has the C struct at its end. Give
//!   [`plugin::PluginModule`] an entry with the new type, so that it is compared as well from then on. Raise
//!   [`ABI_MINOR`] and the version of this package, freeze what was (`tests/plugins/frozen`), and teach the test.
//! - Each side reads of the other's table what its `size` covers; what lies beyond is null or zero. The host does that
//!   once for all entries (`plugin/library/table.rs`), a plugin where it uses one.
//! - Anything else is a new major version, which is another interface.

pub mod call;
pub mod describe;
pub mod host;
pub mod plugin;
pub mod types;

/// Major number of this interface. Host and plugin must agree on it exactly.
pub const ABI_MAJOR: u32 = 1;
/// Minor number. A plugin runs on any host whose minor number is at least the plugin's.
pub const ABI_MINOR: u32 = 1;
/// Name of the one symbol that C and C++ plugins export; see [`plugin::PluginMain`].
pub const PLUGIN_MAIN: &str = "trts_plugin_main";
