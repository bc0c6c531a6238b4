//! gRPC server reflection: the services of both generations and their messages, for tools such as
//! grpcurl.

use tonic::service::RoutesBuilder;
use tonic_reflection::server::{Builder, Error};
use trtserver_proto::DESCRIPTORS;

/// What the paths of both versions of the reflection service begin with.
pub const PATH: &str = "/grpc.reflection.";

/// Adds the reflection service, in the version that tools use today and in the one before.
///
/// # Errors
/// The descriptors of the services contradict each other, which a test excludes.
pub fn add_services(routes: &mut RoutesBuilder) -> Result<(), Error> {
    let builder = || Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS);
    routes.add_service(builder().build_v1()?);
    routes.add_service(builder().build_v1alpha()?);
    Ok(())
}
