//! The routes of v2, and of this server's extensions below `/v2/trtserver`.

use crate::route::{
    Answer, BodyForm, BodySpec, ParameterKind, ParameterSpec, RouteSpec, get, post,
};

const HEALTH: &[&str] = &["health"];
const METADATA: &[&str] = &["metadata"];
const CONFIG: &[&str] = &["model-config"];
const INFERENCE: &[&str] = &["inference"];
const STATISTICS: &[&str] = &["statistics"];
const REPOSITORY: &[&str] = &["model-repository"];
const TRACE: &[&str] = &["trace"];
const LOGGING: &[&str] = &["logging"];
const MEMORY: &[&str] = &["shared-memory"];

/// Statuses of what looks up a model.
const OF_MODEL: &[u16] = &[404, 503];
/// Statuses of inference: besides those of the model, what a request or a backend may do wrong.
const OF_INFERENCE: &[u16] = &[404, 500, 501, 503];
/// Statuses of bodies that are read as JSON.
const OF_BODY: &[u16] = &[500, 503];

const fn whole(name: &'static str, meaning: &'static str) -> ParameterSpec {
    ParameterSpec { name, meaning, required: false, kind: ParameterKind::Number }
}

const AFTER: ParameterSpec = whole("after", "Only what follows this number");
const LEVEL: ParameterSpec = ParameterSpec {
    name: "level",
    meaning: "The least important level that is told",
    required: false,
    kind: ParameterKind::Choice(&["verbose", "info", "warning", "error"]),
};

const BINARY_HEADER: &[ParameterSpec] = &[ParameterSpec {
    name: "Inference-Header-Content-Length",
    meaning: "Bytes of the JSON that binary tensors follow; 0: the body is the tensor of the only input",
    required: false,
    kind: ParameterKind::Number,
}];

/// Every route below `/v2`.
pub const ROUTES_V2: &[RouteSpec] = &[
    get(
        "/v2",
        "serverMetadata",
        "Name, version and extensions of the server",
        METADATA,
        "ServerMetadata",
    ),
    get("/v2/docs", "describe", "This description", METADATA, "Description"),
    get("/v2/health/live", "live", "Whether the server is live", HEALTH, "")
        .answering(Answer::Health("Health"))
        .or(&[404, 503]),
    get("/v2/health/ready", "ready", "Whether the server and its models are ready", HEALTH, "")
        .answering(Answer::Health("Health"))
        .or(&[404, 503]),
    get(
        "/v2/models",
        "models",
        "Names of the models that serve",
        &["metadata", "model-repository"],
        "ModelNames",
    ),
    get("/v2/models/stats", "allStatistics", "Statistics of all models", STATISTICS, "Statistics")
        .or(OF_MODEL),
    get(
        "/v2/models/{model}[/versions/{version}]",
        "modelMetadata",
        "Versions, inputs and outputs of a model",
        METADATA,
        "ModelMetadata",
    )
    .or(OF_MODEL),
    get(
        "/v2/models/{model}[/versions/{version}]/docs",
        "describeModel",
        "The description of a model, with its signature",
        METADATA,
        "Description",
    )
    .or(OF_MODEL),
    get(
        "/v2/models/{model}[/versions/{version}]/ready",
        "modelReady",
        "Whether a model serves",
        HEALTH,
        "",
    )
    .answering(Answer::Health("ModelHealth"))
    .or(&[503]),
    get(
        "/v2/models/{model}[/versions/{version}]/config",
        "modelConfig",
        "The configuration of a model, completed",
        CONFIG,
        "ModelConfig",
    )
    .or(OF_MODEL),
    get(
        "/v2/models/{model}[/versions/{version}]/stats",
        "modelStatistics",
        "Statistics of a model",
        STATISTICS,
        "Statistics",
    )
    .or(OF_MODEL),
    post(
        "/v2/models/{model}[/versions/{version}]/infer",
        "infer",
        "Inference with tensors as JSON or binary",
        INFERENCE,
        BodySpec::required(BodyForm::Tensors("InferRequest")),
    )
    .answering(Answer::Tensors("InferResponse"))
    .with_headers(BINARY_HEADER)
    .or(OF_INFERENCE),
    post(
        "/v2/models/{model}[/versions/{version}]/generate",
        "generate",
        "Inference with inputs as members of an object, for one response",
        INFERENCE,
        BodySpec::required(BodyForm::Json("GenerateRequest")),
    )
    .answering(Answer::Json("GenerateResponse"))
    .or(OF_INFERENCE),
    post(
        "/v2/models/{model}[/versions/{version}]/generate_stream",
        "generateStream",
        "The same for any number of responses, as server-sent events",
        INFERENCE,
        BodySpec::required(BodyForm::Json("GenerateRequest")),
    )
    .answering(Answer::Events("GenerateResponse"))
    .or(OF_INFERENCE),
    get("/v2/trace/setting", "traceSettings", "Settings of traces", TRACE, "TraceSettings")
        .or(OF_BODY),
    post(
        "/v2/trace/setting",
        "changeTraceSettings",
        "Changes settings of traces; null clears one",
        TRACE,
        BodySpec::optional(BodyForm::Json("TraceChange")),
    )
    .answering(Answer::Json("TraceSettings"))
    .or(&[500, 501, 503]),
    get(
        "/v2/models/{model}/trace/setting",
        "modelTraceSettings",
        "Settings of traces of a model",
        TRACE,
        "TraceSettings",
    )
    .or(&[404, 500, 503]),
    post(
        "/v2/models/{model}/trace/setting",
        "changeModelTraceSettings",
        "Changes settings of traces of a model; null clears one",
        TRACE,
        BodySpec::optional(BodyForm::Json("TraceChange")),
    )
    .answering(Answer::Json("TraceSettings"))
    .or(&[404, 500, 501, 503]),
    get("/v2/logging", "logSettings", "Settings of the log", LOGGING, "LogSettings"),
    post(
        "/v2/logging",
        "changeLogSettings",
        "Changes settings of the log",
        LOGGING,
        BodySpec::optional(BodyForm::Json("LogChange")),
    )
    .answering(Answer::Json("LogSettings"))
    .or(&[500, 501, 503]),
    post(
        "/v2/repository/index",
        "repositoryIndex",
        "The models of the repositories",
        REPOSITORY,
        BodySpec::optional(BodyForm::Json("IndexRequest")),
    )
    .answering(Answer::Json("RepositoryIndex"))
    .or(OF_BODY),
    post(
        "/v2/repository/{repository}/index",
        "repositoryIndexOf",
        "The same for one repository, which this server does not have",
        REPOSITORY,
        BodySpec::optional(BodyForm::Json("IndexRequest")),
    )
    .answering(Answer::Json("RepositoryIndex"))
    .or(&[500, 501, 503]),
    post(
        "/v2/repository/models/{model}/load",
        "load",
        "Loads a model, or loads it again",
        REPOSITORY,
        BodySpec::optional(BodyForm::Json("LoadRequest")),
    )
    .or(&[404, 500, 501, 503]),
    post(
        "/v2/repository/models/{model}/unload",
        "unload",
        "Unloads a model",
        REPOSITORY,
        BodySpec::optional(BodyForm::Json("UnloadRequest")),
    )
    .or(&[404, 500, 501, 503]),
    post(
        "/v2/repository/{repository}/models/{model}/load",
        "loadFrom",
        "Loads a model of one repository, which this server does not have",
        REPOSITORY,
        BodySpec::optional(BodyForm::Json("LoadRequest")),
    )
    .or(&[404, 500, 501, 503]),
    post(
        "/v2/repository/{repository}/models/{model}/unload",
        "unloadFrom",
        "Unloads a model of one repository, which this server does not have",
        REPOSITORY,
        BodySpec::optional(BodyForm::Json("UnloadRequest")),
    )
    .or(&[404, 500, 501, 503]),
    get(
        "/v2/systemsharedmemory[/region/{region}]/status",
        "systemRegions",
        "Registered regions of system shared memory",
        MEMORY,
        "SystemRegions",
    )
    .or(&[404, 501, 503]),
    post(
        "/v2/systemsharedmemory[/region/{region}]/register",
        "registerSystem",
        "Registers a region of system shared memory, by its name",
        MEMORY,
        BodySpec::required(BodyForm::Json("SystemRegistration")),
    )
    .or(&[404, 500, 501, 503]),
    post(
        "/v2/systemsharedmemory[/region/{region}]/unregister",
        "unregisterSystem",
        "Unregisters a region of system shared memory, or all",
        MEMORY,
        None,
    )
    .or(&[404, 501, 503]),
    get(
        "/v2/cudasharedmemory[/region/{region}]/status",
        "cudaRegions",
        "Registered regions of GPU memory",
        MEMORY,
        "CudaRegions",
    )
    .or(&[404, 501, 503]),
    post(
        "/v2/cudasharedmemory[/region/{region}]/register",
        "registerCuda",
        "Registers a region of GPU memory, by its name",
        MEMORY,
        BodySpec::required(BodyForm::Json("CudaRegistration")),
    )
    .or(&[404, 500, 501, 503]),
    post(
        "/v2/cudasharedmemory[/region/{region}]/unregister",
        "unregisterCuda",
        "Unregisters a region of GPU memory, or all",
        MEMORY,
        None,
    )
    .or(&[404, 501, 503]),
    get(
        "/v2/trtserver/backends",
        "backends",
        "Backends with their versions, files and models",
        METADATA,
        "Backends",
    ),
    get(
        "/v2/trtserver/health",
        "healthReport",
        "What is not ready, and why",
        HEALTH,
        "HealthReport",
    ),
    get("/v2/trtserver/health/started", "started", "Whether the first load has ended", HEALTH, "")
        .answering(Answer::Health("Health")),
    get("/v2/trtserver/loads", "loads", "How long loads take", REPOSITORY, "Loads"),
    get("/v2/trtserver/memory", "memory", "Who holds how much memory", STATISTICS, "Memory")
        .or(&[500]),
    get(
        "/v2/trtserver/rate-limiter",
        "rateLimiter",
        "Who waits for which resource",
        STATISTICS,
        "RateLimiter",
    ),
    get("/v2/trtserver/requests", "requests", "The traces in memory", TRACE, "Requests"),
    get(
        "/v2/trtserver/requests/{id}",
        "request",
        "Where the time of a request went",
        TRACE,
        "RequestTrace",
    )
    .or(&[404]),
    get(
        "/v2/trtserver/status",
        "status",
        "State, load and advice for every model",
        &["metadata", "model-config", "statistics"],
        "Status",
    )
    .or(&[500]),
    get(
        "/v2/trtserver/status/events",
        "statusEvents",
        "The same as server-sent events: the whole status, then changes every second",
        &["metadata", "model-config", "statistics"],
        "",
    )
    .answering(Answer::Events("Status")),
    get(
        "/v2/trtserver/changes",
        "changes",
        "The last changes of the repository",
        REPOSITORY,
        "Changes",
    )
    .asking(&[AFTER])
    .or(&[500]),
    get("/v2/trtserver/log", "log", "The last lines of the log", LOGGING, "Log")
        .asking(&[AFTER, LEVEL])
        .or(&[404, 500]),
    get(
        "/v2/trtserver/models/{model}[/versions/{version}]/configuration",
        "configuration",
        "The configuration of a model with the file's lines and its defaults",
        CONFIG,
        "Configuration",
    )
    .or(&[404, 500, 503]),
];
