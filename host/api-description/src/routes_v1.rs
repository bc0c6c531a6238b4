//! The routes of v1. Failures have an empty body and the status in the header `NV-Status`.

use crate::route::{
    Answer, BodyForm, BodySpec, ParameterKind, ParameterSpec, RouteSpec, get, post,
};

const HEALTH: &[&str] = &["health"];
const STATUS: &[&str] = &["metadata", "model-config", "statistics"];
const TRACE: &[&str] = &["trace"];
const INFERENCE: &[&str] = &["inference"];
const REPOSITORY: &[&str] = &["model-repository"];
const MEMORY: &[&str] = &["shared-memory"];

const FORMAT: &[ParameterSpec] = &[ParameterSpec {
    name: "format",
    meaning: "Form of the message",
    required: false,
    kind: ParameterKind::Choice(&["text", "json", "binary"]),
}];
const INFER_REQUEST: &[ParameterSpec] = &[ParameterSpec {
    name: "NV-InferRequest",
    meaning: "InferRequestHeader in protobuf's text format, in one line",
    required: true,
    kind: ParameterKind::Text,
}];

const fn infer(path: &'static str, id: &'static str) -> RouteSpec {
    let tensors = BodySpec::required(BodyForm::Binary);
    post(path, id, "Inference with binary tensors", INFERENCE, tensors)
        .answering(Answer::Binary)
        .asking(FORMAT)
        .with_headers(INFER_REQUEST)
}

/// Every route below `/api`.
pub const ROUTES_V1: &[RouteSpec] = &[
    get("/api/health", "healthV1", "Refused: the mode is missing", HEALTH, "")
        .answering(Answer::Nothing),
    get("/api/health/live", "liveV1", "Whether the server is live", HEALTH, "")
        .answering(Answer::Nothing),
    get("/api/health/ready", "readyV1", "Whether the server is ready", HEALTH, "")
        .answering(Answer::Nothing),
    get("/api/status[/{model}]", "statusV1", "Status of the server, or of a model", STATUS, "")
        .answering(Answer::Message)
        .asking(FORMAT),
    get("/api/profile", "profileV1", "Starts or stops a profiler", TRACE, "")
        .answering(Answer::Nothing)
        .asking(&[ParameterSpec {
            name: "cmd",
            meaning: "What to do",
            required: true,
            kind: ParameterKind::Choice(&["start", "stop"]),
        }]),
    infer("/api/infer", "inferNothingV1"),
    infer("/api/infer/{model}[/{version}]", "inferV1"),
    post("/api/modelcontrol/load/{model}", "loadV1", "Loads a model", REPOSITORY, None),
    post("/api/modelcontrol/unload/{model}", "unloadV1", "Unloads a model", REPOSITORY, None),
    post(
        "/api/sharedmemorycontrol/register/{name}/{key}/{offset}/{size}",
        "registerSystemV1",
        "Registers a region of system shared memory",
        MEMORY,
        None,
    ),
    post(
        "/api/sharedmemorycontrol/cudaregister/{name}/{size}/{device}",
        "registerCudaV1",
        "Registers a region of GPU memory, whose handle is the body",
        MEMORY,
        BodySpec::required(BodyForm::Binary),
    ),
    post(
        "/api/sharedmemorycontrol/unregister/{name}",
        "unregisterV1",
        "Unregisters a region",
        MEMORY,
        None,
    ),
    post(
        "/api/sharedmemorycontrol/unregisterall",
        "unregisterAllV1",
        "Unregisters all regions",
        MEMORY,
        None,
    ),
    get("/api/sharedmemorycontrol/status", "regionsV1", "Registered regions", MEMORY, "")
        .answering(Answer::Message)
        .asking(FORMAT),
    get(
        "/api/repository/index",
        "repositoryIndexV1",
        "The models of the repositories",
        REPOSITORY,
        "",
    )
    .answering(Answer::Message)
    .asking(FORMAT),
];
