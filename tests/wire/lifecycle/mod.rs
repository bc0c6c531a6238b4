//! Start, readiness, refusal to start, drain and shutdown.

mod drain_delay;
mod rolling_restart;
mod scarce_resources;
mod service_manager;
mod shutdown;
mod startup;
mod startup_errors;
