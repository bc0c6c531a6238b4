//! A client of each of the six inference endpoints that may disconnect during its request.

use crate::grpc::{INFER, STREAM, infer_v1, infer_v2, raw};
use crate::http1::{Connection, Response, request};
use crate::http2::{Client, End, Ended, call_headers, message};
use crate::server::Running;

/// An inference endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    HttpV1,
    HttpV2,
    GrpcV1,
    GrpcV2,
    StreamV1,
    StreamV2,
}

pub const ENDPOINTS: [Endpoint; 6] = [
    Endpoint::HttpV1,
    Endpoint::HttpV2,
    Endpoint::GrpcV1,
    Endpoint::GrpcV2,
    Endpoint::StreamV1,
    Endpoint::StreamV2,
];
/// Endpoints with RST_STREAM and deadlines.
pub const GRPC_ENDPOINTS: [Endpoint; 4] =
    [Endpoint::GrpcV1, Endpoint::GrpcV2, Endpoint::StreamV1, Endpoint::StreamV2];

impl Endpoint {
    /// The whole request over HTTP, the prefixed message over gRPC.
    pub fn bytes(self, model: &str, values: [f32; 2]) -> Vec<u8> {
        let [a, b] = values;
        match self {
            Endpoint::HttpV1 => {
                let header =
                    r#"batch_size: 1 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
                let path = format!("/api/infer/{model}");
                request("POST", &path, &[("NV-InferRequest", header)], &raw(values))
            }
            Endpoint::HttpV2 => {
                let json = format!(
                    r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[{a},{b}]}}]}}"#
                );
                request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
            }
            Endpoint::GrpcV1 | Endpoint::StreamV1 => message(&infer_v1(model, values)),
            Endpoint::GrpcV2 | Endpoint::StreamV2 => message(&infer_v2(model, values)),
        }
    }

    fn is_stream(self) -> bool {
        matches!(self, Endpoint::StreamV1 | Endpoint::StreamV2)
    }

    /// Whether a response over HTTP has these values.
    pub fn is_echo(self, values: [f32; 2], response: &Response) -> bool {
        match self {
            Endpoint::HttpV1 => response.body.starts_with(&raw(values)),
            _ => {
                let [a, b] = values.map(f64::from);
                response.json()["outputs"][0]["data"] == serde_json::json!([a, b])
            }
        }
    }

    /// Path of the RPC; `None` over HTTP.
    pub fn path(self) -> Option<&'static str> {
        match self {
            Endpoint::HttpV1 | Endpoint::HttpV2 => None,
            Endpoint::GrpcV2 => Some(INFER[0]),
            Endpoint::GrpcV1 => Some(INFER[1]),
            Endpoint::StreamV2 => Some(STREAM[0]),
            Endpoint::StreamV1 => Some(STREAM[1]),
        }
    }
}

/// A client with a request in flight. Disconnects when dropped.
pub struct InferenceClient {
    endpoint: Endpoint,
    values: [f32; 2],
    wire: Wire,
}

enum Wire {
    Http(Connection),
    Grpc(Client, u32),
}

impl InferenceClient {
    /// Sends a request to echo `values`.
    pub fn send(server: &Running, endpoint: Endpoint, model: &str, values: [f32; 2]) -> Self {
        Self::start(server, endpoint, model, values, 1, &[])
    }

    /// Sends the request several times: pipelined over HTTP, over gRPC on streams only.
    pub fn send_many(server: &Running, endpoint: Endpoint, model: &str, times: usize) -> Self {
        Self::start(server, endpoint, model, [1.0, 2.0], times, &[])
    }

    /// Sends a gRPC request with this `grpc-timeout`.
    pub fn send_with_timeout(
        server: &Running,
        endpoint: Endpoint,
        model: &str,
        timeout: &str,
    ) -> Self {
        Self::start(server, endpoint, model, [1.0, 2.0], 1, &[("grpc-timeout", timeout)])
    }

    fn start(
        server: &Running,
        endpoint: Endpoint,
        model: &str,
        values: [f32; 2],
        times: usize,
        more: &[(&str, &str)],
    ) -> Self {
        let bytes = endpoint.bytes(model, values).repeat(times);
        Self {
            endpoint,
            values,
            wire: Wire::begin(server, endpoint, &bytes, !endpoint.is_stream(), more),
        }
    }

    /// Sends half of a request.
    pub fn send_half(server: &Running, endpoint: Endpoint, model: &str) -> Self {
        let bytes = endpoint.bytes(model, [1.0, 2.0]);
        let half = &bytes[..bytes.len() - 5];
        Self { endpoint, values: [1.0, 2.0], wire: Wire::begin(server, endpoint, half, false, &[]) }
    }

    /// Resets the call and returns the open connection; `None` over HTTP.
    pub fn reset(self) -> Option<Client> {
        match self.wire {
            Wire::Http(_) => None,
            Wire::Grpc(mut client, call) => {
                client.reset(call);
                Some(client)
            }
        }
    }

    /// The connection of an HTTP request.
    #[track_caller]
    pub fn into_connection(self) -> Connection {
        match self.wire {
            Wire::Http(connection) => connection,
            Wire::Grpc(..) => panic!("{:?} is not an endpoint of HTTP", self.endpoint),
        }
    }

    /// Waits for the response; true if it is the right echo.
    #[track_caller]
    pub fn is_echoed(self) -> bool {
        let values = self.values;
        match self.wire {
            Wire::Http(mut connection) => {
                let response = connection.response();
                response.status == 200 && self.endpoint.is_echo(values, &response)
            }
            Wire::Grpc(mut client, call) => {
                if self.endpoint.is_stream() {
                    client.send(call, &[], true);
                }
                let Ended { end, status, body } = client.end(call);
                let echoed = body.windows(8).any(|part| part == raw(values));
                end == End::Responded && status == Some(0) && echoed
            }
        }
    }

    /// Waits for the end of a gRPC call and returns its status.
    #[track_caller]
    pub fn status(self) -> Option<u8> {
        match self.wire {
            Wire::Http(_) => None,
            Wire::Grpc(mut client, call) => client.end(call).status,
        }
    }
}

impl Wire {
    fn begin(
        server: &Running,
        endpoint: Endpoint,
        bytes: &[u8],
        whole: bool,
        more: &[(&str, &str)],
    ) -> Self {
        let Some(path) = endpoint.path() else {
            let mut connection = server.connect();
            connection.send(bytes);
            return Wire::Http(connection);
        };
        let mut client = Client::open(server.grpc());
        let call = client.call(&[&call_headers(path), more].concat());
        client.send(call, bytes, whole);
        Wire::Grpc(client, call)
    }
}
