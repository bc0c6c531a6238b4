//! Administration over v2: log settings, request ids, header forwarding, restricted endpoints,
//! reflection, compression.

mod access;
mod grpc_calls;
mod log_settings;
mod request_id;
