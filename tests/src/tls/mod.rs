//! TLS of the server under test: certificates, a client of which the test sees every byte, and
//! certificates that change under load.

mod authority;
mod connection;
mod rotation;

pub use authority::{Authority, Certificate, MountedSecret};
pub use connection::{ClientIdentity, TlsConnection, client_config};
pub use rotation::{RotationReport, rotate};
