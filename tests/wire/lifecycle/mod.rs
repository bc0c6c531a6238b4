//! Start, readiness, refusal to start, drain and shutdown.

mod scarce_resources;
mod shutdown;
mod startup;
mod startup_errors;
