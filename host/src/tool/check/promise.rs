//! What a backend promises, in the order in which a report shows it.

/// One promise. Ids are stable: `--only` and scripts name them.
pub struct Promise {
    pub id: &'static str,
    pub group: &'static str,
    pub text: &'static str,
    /// Watched in every scenario, not only in one of its own name.
    pub standing: bool,
}

const fn asked(group: &'static str, id: &'static str, text: &'static str) -> Promise {
    Promise { id, group, text, standing: false }
}

const fn watched(group: &'static str, id: &'static str, text: &'static str) -> Promise {
    Promise { id, group, text, standing: true }
}

const FILE: &str = "File";
const BACKEND: &str = "Backend";
const MODELS: &str = "Models";
const INSTANCES: &str = "Instances";
const CALLS: &str = "Calls";
const INPUTS: &str = "Inputs";
const OUTPUTS: &str = "Outputs";
const HOST: &str = "Host calls";
const CANCEL: &str = "Cancellation";
const LIFE: &str = "Open and close";

pub const PROMISES: &[Promise] = &[
    asked(
        FILE,
        "file.entry_symbol",
        "it loads and exports an abi_stable root module or trts_backend_main",
    ),
    asked(FILE, "file.interface", "its table is of an interface that this host offers, and whole"),
    asked(FILE, "file.entries", "required entries are there"),
    asked(FILE, "file.info", "backend_info returns a valid, static info, the same each time"),
    asked(
        FILE,
        "file.extensions",
        "the host offers what it requires; get_extension returns what it lists, and null for the rest",
    ),
    asked(
        BACKEND,
        "backend.open",
        "it opens and closes; the description of an open backend is valid and of the same name",
    ),
    asked(BACKEND, "backend.two_names", "it may be open under two names at once"),
    asked(BACKEND, "backend.settings", "settings that it does not know do no harm"),
    asked(MODELS, "model.open", "a model opens and closes"),
    asked(MODELS, "model.broken_config", "a model that cannot be is refused in words"),
    asked(
        MODELS,
        "model.complete",
        "autocomplete adds valid fields to a configuration or fails in words",
    ),
    asked(MODELS, "model.together", "two models are open at once, and close in any order"),
    asked(INSTANCES, "instance.many", "1, 4 and 16 instances work at once, each on its own thread"),
    asked(CALLS, "call.single", "a call is answered with every output that is wanted"),
    asked(
        CALLS,
        "call.batch",
        "several calls with different rows are answered in one batch, each with its own rows",
    ),
    asked(CALLS, "call.empty", "tensors without elements are answered or refused"),
    asked(CALLS, "call.types", "data types that it does not serve are refused in words"),
    asked(
        CALLS,
        "call.misfit",
        "a wrong data type, a wrong shape and a missing input end in an answer or an error",
    ),
    watched(CALLS, "call.once", "each accepted call is ended exactly once"),
    watched(CALLS, "call.release", "each accepted request is released exactly once"),
    watched(CALLS, "call.refused", "an error from execute means that nothing was accepted"),
    watched(INPUTS, "input.unchanged", "inputs are not written to"),
    asked(
        INPUTS,
        "input.protected",
        "inputs are only read, not beyond their end, and not after their release",
    ),
    asked(
        INPUTS,
        "input.aligned",
        "inputs need no more alignment than was asked for, and may come in several parts",
    ),
    watched(
        OUTPUTS,
        "output.declared",
        "outputs are of the declared name, type, shape and size, each once",
    ),
    asked(OUTPUTS, "output.not_requested", "outputs that nobody wants do no harm"),
    watched(OUTPUTS, "output.bounds", "memory around an output is not written"),
    watched(OUTPUTS, "output.late", "outputs are not written after they were sent"),
    asked(
        OUTPUTS,
        "output.adopted",
        "donated memory stays as it is until its release, which may come late",
    ),
    watched(HOST, "host.calls", "the host's entries are called as the interface allows"),
    watched(HOST, "host.responses", "every response that was begun is sent or dropped"),
    watched(HOST, "host.errors", "every error that was received is freed"),
    watched(
        HOST,
        "host.responders",
        "every reply that was retained is released before the instance is closed",
    ),
    asked(HOST, "host.memory", "memory of the host does not pile up from call to call"),
    asked(
        CANCEL,
        "cancel.before",
        "a call that is cancelled before it begins ends in time, answered or CANCELLED",
    ),
    asked(
        CANCEL,
        "cancel.during",
        "a call that is cancelled meanwhile ends in time, answered or CANCELLED",
    ),
    asked(
        CANCEL,
        "cancel.deadline",
        "a call whose deadline has passed ends in time, answered, CANCELLED or DEADLINE",
    ),
    asked(
        LIFE,
        "life.cycles",
        "opening and closing again and again leaves no memory, thread or descriptor behind",
    ),
    asked(LIFE, "life.threads", "its own threads have ended when backend_close returns"),
    asked(
        LIFE,
        "life.process",
        "signal handlers, working directory, locale and environment stay as they were",
    ),
];

pub fn find(id: &str) -> Option<&'static Promise> {
    PROMISES.iter().find(|p| p.id == id)
}
