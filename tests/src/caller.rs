//! A caller at any of the six doors, who may leave in the middle of his request.

use crate::grpc::{INFER, STREAM, infer_v1, infer_v2, raw};
use crate::http2::{Client, End, Ended, call_headers, message};
use crate::server::Running;
use crate::wire::{Connection, request};

/// A way to ask for an inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    HttpV1,
    HttpV2,
    GrpcV1,
    GrpcV2,
    StreamV1,
    StreamV2,
}

pub const DOORS: [Door; 6] =
    [Door::HttpV1, Door::HttpV2, Door::GrpcV1, Door::GrpcV2, Door::StreamV1, Door::StreamV2];
/// Those where a call can be broken off without the connection, and where it may have a deadline.
pub const GRPC_DOORS: [Door; 4] = [Door::GrpcV1, Door::GrpcV2, Door::StreamV1, Door::StreamV2];

impl Door {
    /// What goes through it: the whole request over HTTP, the message over gRPC.
    pub fn bytes(self, model: &str, values: [f32; 2]) -> Vec<u8> {
        let [a, b] = values;
        match self {
            Door::HttpV1 => {
                let header =
                    r#"batch_size: 1 input { name: "INPUT0" dims: 2 } output { name: "OUTPUT0" }"#;
                let path = format!("/api/infer/{model}");
                request("POST", &path, &[("NV-InferRequest", header)], &raw(values))
            }
            Door::HttpV2 => {
                let json = format!(
                    r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[{a},{b}]}}]}}"#
                );
                request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
            }
            Door::GrpcV1 | Door::StreamV1 => message(&infer_v1(model, values)),
            Door::GrpcV2 | Door::StreamV2 => message(&infer_v2(model, values)),
        }
    }

    fn is_stream(self) -> bool {
        matches!(self, Door::StreamV1 | Door::StreamV2)
    }

    fn path(self) -> Option<&'static str> {
        match self {
            Door::HttpV1 | Door::HttpV2 => None,
            Door::GrpcV2 => Some(INFER[0]),
            Door::GrpcV1 => Some(INFER[1]),
            Door::StreamV2 => Some(STREAM[0]),
            Door::StreamV1 => Some(STREAM[1]),
        }
    }
}

/// See the module text. Dropped, he hangs up.
pub struct Caller {
    door: Door,
    values: [f32; 2],
    line: Line,
}

enum Line {
    Http(Connection),
    Grpc(Client, u32),
}

impl Caller {
    /// Asks `model` for the echo of `values`.
    pub fn ask(server: &Running, door: Door, model: &str, values: [f32; 2]) -> Self {
        Self::send(server, door, model, values, 1, &[])
    }

    /// The same so many times: over HTTP in one breath, over gRPC only in streams.
    pub fn ask_often(server: &Running, door: Door, model: &str, times: usize) -> Self {
        Self::send(server, door, model, [1.0, 2.0], times, &[])
    }

    /// The same over gRPC with a deadline, as `grpc-timeout` has it.
    pub fn ask_within(server: &Running, door: Door, model: &str, timeout: &str) -> Self {
        Self::send(server, door, model, [1.0, 2.0], 1, &[("grpc-timeout", timeout)])
    }

    fn send(
        server: &Running,
        door: Door,
        model: &str,
        values: [f32; 2],
        times: usize,
        more: &[(&str, &str)],
    ) -> Self {
        let bytes = door.bytes(model, values).repeat(times);
        Self { door, values, line: Line::begin(server, door, &bytes, !door.is_stream(), more) }
    }

    /// Sends half of a request.
    pub fn begin_to_ask(server: &Running, door: Door, model: &str) -> Self {
        let bytes = door.bytes(model, [1.0, 2.0]);
        let half = &bytes[..bytes.len() - 5];
        Self { door, values: [1.0, 2.0], line: Line::begin(server, door, half, false, &[]) }
    }

    /// Breaks the call off and stays on the line, which comes back. Over HTTP there is no such thing.
    pub fn reset(self) -> Option<Client> {
        match self.line {
            Line::Http(_) => None,
            Line::Grpc(mut client, call) => {
                client.reset(call);
                Some(client)
            }
        }
    }

    /// Waits for the echo and says whether it is right.
    #[track_caller]
    pub fn is_answered(self) -> bool {
        let values = self.values;
        match self.line {
            Line::Http(mut connection) => {
                let response = connection.response();
                let right = match self.door {
                    Door::HttpV1 => response.body.starts_with(&raw(values)),
                    _ => {
                        let [a, b] = values.map(f64::from);
                        response.json()["outputs"][0]["data"] == serde_json::json!([a, b])
                    }
                };
                response.status == 200 && right
            }
            Line::Grpc(mut client, call) => {
                if self.door.is_stream() {
                    client.send(call, &[], true);
                }
                let Ended { end, status, body } = client.end(call);
                let echoed = body.windows(8).any(|part| part == raw(values));
                end == End::Answered && status == Some(0) && echoed
            }
        }
    }

    /// Waits for the end of a gRPC call, and gives its status.
    #[track_caller]
    pub fn status(self) -> Option<u8> {
        match self.line {
            Line::Http(_) => None,
            Line::Grpc(mut client, call) => client.end(call).status,
        }
    }
}

impl Line {
    fn begin(
        server: &Running,
        door: Door,
        bytes: &[u8],
        whole: bool,
        more: &[(&str, &str)],
    ) -> Self {
        let Some(path) = door.path() else {
            let mut connection = server.connect();
            connection.send(bytes);
            return Line::Http(connection);
        };
        let mut client = Client::open(server.grpc());
        let call = client.call(&[&call_headers(path), more].concat());
        client.send(call, bytes, whole);
        Line::Grpc(client, call)
    }
}
