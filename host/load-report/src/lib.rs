//! Load reports of ORCA: how busy the server is, for load balancers that weigh servers by it.
//!
//! [`LoadReporter`] measures the models on demand, at most a few times a second, and [`LoadReport`]
//! has the three forms that a report has in a response, and the message of `OpenRcaService`. While
//! no client asks for reports nothing is measured.

#![forbid(unsafe_code)]

mod report;
mod report_format;
mod reporter;
mod version_load;

pub use report::LoadReport;
pub use report_format::{REPORT, ReportFormat};
pub use reporter::{GpuUtilization, LoadReporter, queue_timeout};
