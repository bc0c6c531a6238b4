//! The memory report: what the ledger has entered, and what is measured when the report is made, by model, version and use.

mod entry;
mod measured;
mod owner;
mod report;
mod unload;

pub use entry::{Entry, OwnerMemory, Totals};
pub use owner::of_version;
pub use report::{MemoryReport, ModelMemory};
pub use unload::{UnloadReport, log_in_use};
