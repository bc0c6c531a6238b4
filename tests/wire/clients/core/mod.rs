//! The Rust client library, clients/core: v2 and v1, over HTTP and gRPC.

mod v1;
mod v2;

use std::sync::LazyLock;
use trtserver_client::{Bytes, Protocol, Settings};
use trtserver_tests::Running;

static SERVER: LazyLock<Running> = LazyLock::new(|| super::server().start_shared());

fn settings(protocol: Protocol) -> Settings {
    let url = match protocol {
        Protocol::Http => SERVER.http(),
        Protocol::Grpc => SERVER.grpc(),
    };
    Settings::new(url).protocol(protocol)
}

#[track_caller]
fn ok<T>(result: trtserver_client::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn int32(values: &[i32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
}

fn fp32(values: &[f32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
}
