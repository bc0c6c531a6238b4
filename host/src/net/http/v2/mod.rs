//! The v2 endpoints over HTTP.
mod json; // JSON as this protocol needs it
