//! Cancellation by disconnect, RST_STREAM or deadline, on every endpoint.

mod clients;
mod executing;
mod queued;
