//! `libtritonserver.so` for unmodified Triton backends (`libtriton_*.so`): exports the 281
//! functions that Triton offers its backends (`TRITONBACKEND_*`, `TRITONSERVER_*`,
//! `TRITONREPOAGENT_*`, `TRITONCACHE_*`), on the plugin interface of this server.
//!
//! ```text
//! plugin.rs ──── open_backend.rs         our backend table: opens backends, models, instances
//!     │          completion.rs           completes configurations; execute.rs: runs batches
//!     │          loader/                 finds and opens a backend's library
//!     │            search.rs             version, model and backend directory, `runtime`, model.py
//!     │            library.rs            dlopen, once per file; entries.rs: the functions that it defines
//!     │            carrier.rs            stand-in for a renamed libtritonserver
//! handles.rs                             checked handles: every object that a backend holds is in a pool of its kind
//! nested.rs                              sends requests of backends to other models
//! objects/                               what is behind the handles
//! exports/                               the exported functions, a file for each section of the headers
//!     guard.rs                           arguments checked, panics caught: the macro `export!`
//!     names.rs                           all names, by header
//! unused_exports.rs                      functions that no known backend calls: they answer "unsupported"
//! batch_strategy.rs                      libraries that select the requests of a batch
//! processes.rs                           processes that a backend starts for a model
//! host.rs, scope.rs, fault.rs            the host's functions, log and errors
//! ```

mod batch_strategy;
mod completion;
mod execute;
mod execution_env;
mod exports;
mod fault;
mod handles;
mod host;
mod loader;
mod nested;
mod objects;
mod open_backend;
mod plugin;
mod processes;
mod scope;
mod tensorrt_only;
mod unused_exports;

pub use exports::names;
