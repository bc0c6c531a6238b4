//! Flags of the model repository and of loading.

use super::flag::{BYTES, FlagKind, FlagSpec, POSITIVE, flag_spec};

pub(super) const REPOSITORY: &[FlagSpec] = &[
    flag_spec(
        "model-repository",
        FlagKind::Path("DIR"),
        "",
        "Model repository: a directory with one directory per model, or its URL in an object store: \
         gs://BUCKET/PATH, s3://BUCKET/PATH, s3://HOST:PORT/BUCKET/PATH, as://ACCOUNT/CONTAINER/PATH. Required. \
         With this spelling, Triton's, configurations may be incomplete, see --strict-model-config",
    )
    .repeats(),
    flag_spec(
        "model-store",
        FlagKind::Path("DIR"),
        "",
        "Same as --model-repository under the program name tritonserver; under other names the spelling of TRTIS: \
         configurations must be complete",
    )
    .also(&["modelstore"])
    .repeats(),
    flag_spec(
        "model_base_path",
        FlagKind::Path("DIR"),
        "",
        "Same as --model-repository, with the responses of the releases that had this flag",
    )
    .also(&["model-base-path"])
    .repeats(),
    flag_spec(
        "model-name",
        FlagKind::Text("NAME"),
        "",
        "Name of the model in a repository that holds the files of one model itself; without it the variable \
         INFERENCE_SERVICE_NAME, the configuration or the directory names the model",
    ),
    flag_spec(
        "model-cache-dir",
        FlagKind::Path("DIR"),
        "",
        "Cache of models from object stores, which servers may share; by default trtserver/models in the user's cache \
         directory",
    ),
    flag_spec(
        "model-cache-size",
        FlagKind::Size,
        "",
        "Maximum bytes of the model cache: models that are not loaded are removed, those used longest ago first; by \
         default no limit",
    ),
    flag_spec(
        "store-timeout-secs",
        POSITIVE,
        "30",
        "How long an object store may send nothing, and how long failed calls are repeated, before a load fails",
    ),
    flag_spec(
        "strict-model-config",
        FlagKind::Bool,
        "",
        "Require a complete configuration file for every model; with false the backend completes \
         missing fields. The default is false with --model-repository, as in Triton, and true with --model-store, as in TRTIS, unless the program is called tritonserver",
    ),
    flag_spec("disable-auto-complete-config", FlagKind::Bool, "false", "Same as --strict-model-config=true"),
    flag_spec("model-load-thread-count", POSITIVE, "4", "Number of models loaded in parallel"),
    flag_spec(
        "max-instances",
        POSITIVE,
        "",
        "Maximum number of instances of all models, each of which is a thread; by default 4096, or less where the \
         system allows fewer threads",
    ),
    flag_spec(
        "max-instances-per-model",
        POSITIVE,
        "1024",
        "Maximum number of instances of one model version",
    ),
    flag_spec(
        "max-load-memory",
        BYTES,
        "268435456",
        "Maximum bytes of labels, initial states and warm-up data of one model",
    ),
    flag_spec(
        "warmup-timeout-secs",
        FlagKind::Count,
        "1800",
        "Time limit in seconds for the warm-up of an instance, after which the load fails; 0 for none",
    ),
    flag_spec(
        "model-load-retry-count",
        FlagKind::Count,
        "0",
        "How often the opening of a model version is tried again after it failed",
    ),
    flag_spec(
        "model-control-mode",
        FlagKind::Choice(&["none", "poll", "explicit"]),
        "none",
        "none: load all models at start; poll: load models when their files change; explicit: load \
         the models of --load-model at start, others by request. Without this flag \
         --repository-poll-secs or --allow-poll-model-repository=true means poll",
    ),
    flag_spec(
        "allow-model-control",
        FlagKind::Bool,
        "false",
        "Same as --model-control-mode=explicit; requires --allow-poll-model-repository=false",
    ),
    flag_spec(
        "load-model",
        FlagKind::Text("NAME"),
        "",
        "Model to load at start in explicit mode; * loads all models",
    )
    .repeats(),
    flag_spec(
        "allow-uploaded-code",
        FlagKind::Bool,
        "",
        "Load requests may bring files of models that can run code in the server: libraries, scripts, graphs, \
         plans. The default is true if only this machine can send load requests or they need a key \
         (--http-restricted-api, --grpc-restricted-protocol), otherwise false",
    ),
    flag_spec(
        "model-link-dir",
        FlagKind::Path("DIR"),
        "",
        "Directory to which symbolic links in models may lead, beside the model's own and the repositories",
    )
    .repeats(),
    flag_spec("allow-poll-model-repository", FlagKind::Bool, "", "Same as --model-control-mode=poll")
        .also(&["allow-model-load-unload"]),
    flag_spec(
        "repository-poll-secs",
        FlagKind::Count,
        "15",
        "Polling interval of the model repository in seconds; 0 disables polling",
    )
    .also(&["file-system-poll-secs"]),
    flag_spec(
        "repository-settle-secs",
        FlagKind::Float,
        "1",
        "Load changed files once they have not changed for this time in seconds",
    ),
    flag_spec(
        "model-config-name",
        FlagKind::Text("NAME"),
        "",
        "Use configs/NAME.pbtxt of a model instead of its config.pbtxt, where the model has it",
    ),
    flag_spec(
        "model-namespacing",
        FlagKind::Bool,
        "false",
        "Load models of the same name from different repositories; each is identified by its repository and name",
    ),
];
