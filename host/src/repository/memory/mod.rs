//! The memory report: what the ledger has entered, and what is measured when the report is made, by model, version and use.

mod report; // the report as a whole

pub use report::{Entry, MemoryReport, ModelMemory, OwnerMemory, Totals, of_version};
