//! The messages of both protocol generations, and their text and JSON forms.
//!
//! One model configuration serves both: v1 messages refer to [`v2::ModelConfig`].

pub mod codec;
mod float_format;
pub mod json;
mod message_tree;
pub mod parts;
pub mod schema;
pub mod set_fields;
pub mod text;

/// The descriptors of the services and their messages, encoded as a `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Generated code follows the generator's taste, not ours.
macro_rules! generated {
    ($package:literal) => {
        tonic::include_proto!($package);
        include!(concat!(env!("OUT_DIR"), "/services/", $package, ".rs"));
    };
}

/// `nvidia.inferenceserver`: the v1 messages and the service `GRPCService`.
#[allow(clippy::all, clippy::unwrap_used, clippy::expect_used, rustdoc::all, missing_docs)]
pub mod v1 {
    generated!("nvidia.inferenceserver");
}

/// `inference`: the v2 messages, the model configuration and the service `GRPCInferenceService`.
#[allow(clippy::all, clippy::unwrap_used, clippy::expect_used, rustdoc::all, missing_docs)]
pub mod v2 {
    generated!("inference");
}

/// `grpc.health.v1`: the standard health check.
#[allow(clippy::all, clippy::unwrap_used, clippy::expect_used, rustdoc::all, missing_docs)]
pub mod health {
    generated!("grpc.health.v1");
}

/// `xds.data.orca.v3`: the load of a server.
#[allow(clippy::all, clippy::unwrap_used, clippy::expect_used, rustdoc::all, missing_docs)]
pub mod load_report {
    tonic::include_proto!("xds.data.orca.v3");
}

/// `xds.service.orca.v3`: load reports as a stream.
#[allow(clippy::all, clippy::unwrap_used, clippy::expect_used, rustdoc::all, missing_docs)]
pub mod load_reports {
    generated!("xds.service.orca.v3");
}
