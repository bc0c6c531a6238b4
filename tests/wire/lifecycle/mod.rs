//! Start, readiness, refusal to start, drain and shutdown.

mod shutdown;
mod startup;
mod startup_errors;
