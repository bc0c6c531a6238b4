//! The memory report: what the ledger has entered, and what is measured when the report is made, by model, version and use.

mod entry; // memory of one kind, and sums
mod measured; // what no counter is kept for
mod owner; // memory of one model version
mod report; // the report as a whole
mod unload; // what an unload gave back

pub use entry::{Entry, OwnerMemory, Totals};
pub use owner::of_version;
pub use report::{MemoryReport, ModelMemory};
pub use unload::{UnloadReport, log_in_use};
