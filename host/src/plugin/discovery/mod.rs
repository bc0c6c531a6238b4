//! Which backends this server has, in which versions, and which of them a model gets.

pub mod adapters; // plugins that open the libraries of other servers
pub mod backends; // all backends, in all their versions
pub mod candidate; // a file that may be a backend
pub mod directories; // the files in `--backend-dir` directories
pub mod inventory; // the backends and versions that one scan found
pub mod manifest; // `plugin.toml`
pub mod version; // comparison of version strings
