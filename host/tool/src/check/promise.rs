//! The promises of a backend, in the order of the report.

/// One promise. Ids are stable: `--only` and scripts name them.
pub struct Promise {
    pub id: &'static str,
    pub group: &'static str,
    pub text: &'static str,
    /// Checked in every scenario, instead of in one of its own.
    pub standing: bool,
}

const fn scenario(group: &'static str, id: &'static str, text: &'static str) -> Promise {
    Promise { id, group, text, standing: false }
}

const fn standing(group: &'static str, id: &'static str, text: &'static str) -> Promise {
    Promise { id, group, text, standing: true }
}

const FILE: &str = "File";
const BACKEND: &str = "Backend";
const MODELS: &str = "Models";
const INSTANCES: &str = "Instances";
const REQUESTS: &str = "Requests";
const INPUTS: &str = "Inputs";
const OUTPUTS: &str = "Outputs";
const HOST: &str = "Host API";
const CANCEL: &str = "Cancellation";
const LIFE: &str = "Open and close";

pub const PROMISES: &[Promise] = &[
    scenario(FILE, "file.entry_symbol", "loads, and exports a root module or trts_backend_main"),
    scenario(
        FILE,
        "file.interface",
        "its table is complete and of a version that this host offers",
    ),
    scenario(FILE, "file.entries", "required entries are not null"),
    scenario(FILE, "file.info", "backend_info returns a valid, static info, the same each time"),
    scenario(
        FILE,
        "file.extensions",
        "the host offers what it requires; get_extension returns what it lists, and null for the rest",
    ),
    scenario(FILE, "file.exports", "it exports its entry symbols and nothing else"),
    scenario(BACKEND, "backend.open", "opens and closes; the info of the open backend is valid"),
    scenario(BACKEND, "backend.two_names", "can be open under two names at once"),
    scenario(BACKEND, "backend.settings", "unknown settings are ignored or refused with a text"),
    scenario(MODELS, "model.open", "a model opens and closes"),
    scenario(MODELS, "model.broken_config", "an invalid model is refused with a text"),
    scenario(MODELS, "model.complete", "autocomplete adds valid fields or fails with a text"),
    scenario(
        MODELS,
        "model.probe",
        "model_probe recognises an entry of the directory, or fails with a text",
    ),
    scenario(MODELS, "model.together", "two models can be open at once, and close in any order"),
    scenario(INSTANCES, "instance.many", "1, 4 and 16 instances execute at once on their threads"),
    scenario(
        INSTANCES,
        "instance.any_thread",
        "with ANY_THREAD, it executes on threads other than its own",
    ),
    scenario(
        INSTANCES,
        "instance.in_flight",
        "with a max_in_flight above 1, it accepts batches before earlier ones are finished",
    ),
    scenario(
        REQUESTS,
        "request.single",
        "the response has every requested output, and belongs to its request",
    ),
    scenario(
        REQUESTS,
        "request.batch",
        "several requests of different batch sizes in one batch get the rows that they get alone",
    ),
    scenario(REQUESTS, "request.empty", "tensors without elements are accepted or refused"),
    scenario(REQUESTS, "request.types", "unsupported data types are refused with a text"),
    scenario(
        REQUESTS,
        "request.misfit",
        "a wrong data type, a wrong shape or a missing input leads to a response or an error",
    ),
    standing(REQUESTS, "request.once", "each accepted request is finished exactly once"),
    standing(REQUESTS, "request.release", "each accepted request is released exactly once"),
    standing(REQUESTS, "request.refused", "an error from execute means that nothing was accepted"),
    standing(INPUTS, "input.unchanged", "inputs are not written"),
    scenario(
        INPUTS,
        "input.protected",
        "inputs are not written, read beyond their end, or read after their release",
    ),
    scenario(
        INPUTS,
        "input.aligned",
        "the least alignment is enough, and inputs may have several parts",
    ),
    standing(
        OUTPUTS,
        "output.declared",
        "outputs have the declared name, type, shape and size, each once",
    ),
    scenario(OUTPUTS, "output.not_requested", "outputs may be left out of a request"),
    standing(OUTPUTS, "output.bounds", "memory around an output is not written"),
    standing(OUTPUTS, "output.late", "outputs are not written after they were sent"),
    scenario(
        OUTPUTS,
        "output.adopted",
        "adopted memory does not change until its release, which may be late",
    ),
    standing(HOST, "host.calls", "the host's functions are called as documented"),
    standing(HOST, "host.responses", "every response is sent or freed"),
    standing(HOST, "host.errors", "every error that was received is freed"),
    standing(
        HOST,
        "host.responders",
        "every detached responder is released before the instance is closed",
    ),
    standing(HOST, "host.events", "every device event is destroyed or given to the host"),
    scenario(HOST, "host.memory", "host memory does not accumulate over requests"),
    scenario(
        CANCEL,
        "cancel.before",
        "a request cancelled before execution finishes in time, with a response or CANCELLED",
    ),
    scenario(
        CANCEL,
        "cancel.during",
        "a request cancelled during execution finishes in time, with a response or CANCELLED",
    ),
    scenario(
        CANCEL,
        "cancel.deadline",
        "a request past its deadline finishes in time, with a response, CANCELLED or DEADLINE",
    ),
    scenario(
        LIFE,
        "life.cycles",
        "opening and closing fifty times leaks no memory, thread or descriptor",
    ),
    scenario(LIFE, "life.threads", "its threads have ended when backend_close returns"),
    scenario(
        LIFE,
        "life.process",
        "signal handlers, working directory, locale and environment are unchanged",
    ),
];

pub fn find_promise(id: &str) -> Option<&'static Promise> {
    PROMISES.iter().find(|p| p.id == id)
}
