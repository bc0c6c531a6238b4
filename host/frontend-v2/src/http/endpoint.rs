//! The endpoint of a v2 method and path. Paths match as a whole: no trailing slash, no
//! percent-decoding.

use http::{Method, StatusCode};
use trtserver_config::{AccessedModels, ApiGroup};
use trtserver_request::shared_memory::RegionKind;
use trtserver_wire::access::EndpointAccess;

/// An endpoint, with the names in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint<'a> {
    Server,
    /// The description of the API.
    Description,
    /// An extension of this server, as are all until `Started`.
    Backends,
    Status,
    StatusEvents,
    /// The last changes of the repository.
    Changes,
    /// The last lines of the log.
    Log,
    /// The configuration of a model with its source. `version` is empty when the path has none.
    Configuration {
        name: &'a str,
        version: &'a str,
    },
    Health,
    Loads,
    Memory,
    /// Resources, holders and waiters of the rate limiter.
    RateLimiter,
    /// The traces in memory.
    Requests,
    /// One of them, by an id that is percent-encoded.
    Request {
        id: &'a str,
    },
    Started,
    Live,
    Ready,
    /// The list of models, as KServe has it.
    Models,
    /// `version` is empty when the path has none.
    Model {
        name: &'a str,
        version: &'a str,
        call: ModelEndpoint,
    },
    AllStatistics,
    /// An empty model means the server.
    Trace {
        model: &'a str,
        change: bool,
    },
    Logging {
        change: bool,
    },
    /// An empty repository means all.
    Index {
        repository: &'a str,
    },
    Control {
        repository: &'a str,
        name: &'a str,
        load: bool,
    },
    /// An empty region means all.
    SharedMemory {
        kind: RegionKind,
        region: &'a str,
        call: RegionAction,
    },
}

/// An endpoint of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelEndpoint {
    Metadata,
    Ready,
    Infer,
    /// `generate_stream` takes any number of responses.
    Generate {
        streams: bool,
    },
    Config,
    Statistics,
    /// The description of the model's API.
    Description,
}

/// An action on shared memory regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionAction {
    Status,
    Register,
    Unregister,
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a method and a path.
    ///
    /// # Errors
    /// 404 for an unknown path, 405 for a known one with the wrong method; and whether the endpoint
    /// responds in JSON.
    pub fn from_request(method: &Method, path: &'a str) -> Result<Self, (StatusCode, bool)> {
        let found = find_endpoint(path, method == Method::POST);
        let (endpoint, get, post) = found.ok_or((StatusCode::NOT_FOUND, false))?;
        let fits = (get && method == Method::GET) || (post && method == Method::POST);
        if fits { Ok(endpoint) } else { Err((StatusCode::METHOD_NOT_ALLOWED, endpoint.is_json())) }
    }

    /// The body of an inference is not always JSON, and a refused method on a health endpoint has
    /// Triton's content type.
    fn is_json(&self) -> bool {
        use Endpoint::*;
        !matches!(
            self,
            Live | Ready | Model { call: ModelEndpoint::Ready | ModelEndpoint::Infer, .. }
        )
    }
}

impl<'a> Endpoint<'a> {
    /// What the access check must know. Health may name models that are not ready.
    pub fn access(&self) -> EndpointAccess<'a> {
        use AccessedModels::{All, Named, None};
        let groups = self.groups();
        let for_models = |models| EndpointAccess::for_models(groups, models);
        let for_control =
            |models, what, subject| EndpointAccess::for_control(groups, models, what, subject);
        match *self {
            Endpoint::Live | Endpoint::Ready | Endpoint::Started => for_models(None),
            Endpoint::Server | Endpoint::Description | Endpoint::Backends => for_models(None),
            Endpoint::Health | Endpoint::Models | Endpoint::Loads | Endpoint::Index { .. } => {
                for_models(All)
            }
            Endpoint::Memory | Endpoint::RateLimiter | Endpoint::AllStatistics => for_models(All),
            Endpoint::Status | Endpoint::StatusEvents | Endpoint::Changes => for_models(All),
            // Lines may name any model.
            Endpoint::Log => for_models(All),
            Endpoint::Configuration { name, .. } => for_models(Named(name)),
            Endpoint::Requests | Endpoint::Request { .. } => for_models(All),
            Endpoint::Model { name, .. } => for_models(Named(name)),
            Endpoint::Control { name, load: true, .. } => {
                for_control(Named(name), "load model", name)
            }
            Endpoint::Control { name, .. } => for_control(Named(name), "unload model", name),
            Endpoint::Trace { model, change } => {
                let models = AccessedModels::from_name(model);
                match change {
                    true => for_control(models, "change trace settings", model),
                    false => for_models(models),
                }
            }
            Endpoint::Logging { change: true } => for_control(None, "change log settings", ""),
            Endpoint::Logging { .. } => for_models(None),
            Endpoint::SharedMemory { region, call, .. } => match call {
                RegionAction::Status => for_models(None),
                RegionAction::Register => for_control(None, "register shared memory", region),
                RegionAction::Unregister => for_control(None, "unregister shared memory", region),
            },
        }
    }

    /// The groups for restrictions and scopes.
    pub fn groups(&self) -> &'static [ApiGroup] {
        match self {
            Endpoint::Live | Endpoint::Ready | Endpoint::Started | Endpoint::Health => {
                &[ApiGroup::Health]
            }
            Endpoint::Server | Endpoint::Description | Endpoint::Backends => &[ApiGroup::Metadata],
            // Names of models, which the repository index shows, too.
            Endpoint::Models => &[ApiGroup::Metadata, ApiGroup::ModelRepository],
            Endpoint::Loads | Endpoint::Index { .. } | Endpoint::Control { .. } => {
                &[ApiGroup::ModelRepository]
            }
            Endpoint::Memory | Endpoint::RateLimiter | Endpoint::AllStatistics => {
                &[ApiGroup::Statistics]
            }
            // With the configuration as far as queues and instances show it, as the status of v1.
            Endpoint::Status | Endpoint::StatusEvents => {
                &[ApiGroup::Metadata, ApiGroup::ModelConfig, ApiGroup::Statistics]
            }
            Endpoint::Changes => &[ApiGroup::ModelRepository],
            Endpoint::Log => &[ApiGroup::Logging],
            Endpoint::Configuration { .. } => &[ApiGroup::ModelConfig],
            Endpoint::Model { call, .. } => match call {
                ModelEndpoint::Metadata | ModelEndpoint::Description => &[ApiGroup::Metadata],
                ModelEndpoint::Ready => &[ApiGroup::Health],
                ModelEndpoint::Infer | ModelEndpoint::Generate { .. } => &[ApiGroup::Inference],
                ModelEndpoint::Config => &[ApiGroup::ModelConfig],
                ModelEndpoint::Statistics => &[ApiGroup::Statistics],
            },
            Endpoint::Trace { .. } | Endpoint::Requests | Endpoint::Request { .. } => {
                &[ApiGroup::Trace]
            }
            Endpoint::Logging { .. } => &[ApiGroup::Logging],
            Endpoint::SharedMemory { .. } => &[ApiGroup::SharedMemory],
        }
    }
}

/// The endpoint of a path, and whether it accepts GET and POST.
fn find_endpoint(path: &str, post: bool) -> Option<(Endpoint<'_>, bool, bool)> {
    let rest = path.strip_prefix("/v2")?;
    if rest.is_empty() {
        return Some((Endpoint::Server, true, false));
    }
    let segments: smallvec::SmallVec<[&str; 8]> = rest.strip_prefix('/')?.split('/').collect();
    if segments.iter().any(|s| s.is_empty()) {
        return None;
    }
    Some(match segments.as_slice() {
        ["docs"] => (Endpoint::Description, true, false),
        ["health", "live"] => (Endpoint::Live, true, false),
        ["health", "ready"] => (Endpoint::Ready, true, false),
        ["trtserver", "backends"] => (Endpoint::Backends, true, false),
        ["trtserver", "status"] => (Endpoint::Status, true, false),
        ["trtserver", "status", "events"] => (Endpoint::StatusEvents, true, false),
        ["trtserver", "changes"] => (Endpoint::Changes, true, false),
        ["trtserver", "log"] => (Endpoint::Log, true, false),
        ["trtserver", "models", name, "configuration"] => {
            (Endpoint::Configuration { name, version: "" }, true, false)
        }
        ["trtserver", "models", name, "versions", version, "configuration"]
            if is_number(version) =>
        {
            (Endpoint::Configuration { name, version }, true, false)
        }
        ["trtserver", "health"] => (Endpoint::Health, true, false),
        ["trtserver", "health", "started"] => (Endpoint::Started, true, false),
        ["trtserver", "loads"] => (Endpoint::Loads, true, false),
        ["trtserver", "memory"] => (Endpoint::Memory, true, false),
        ["trtserver", "rate-limiter"] => (Endpoint::RateLimiter, true, false),
        ["trtserver", "requests"] => (Endpoint::Requests, true, false),
        ["trtserver", "requests", id] => (Endpoint::Request { id }, true, false),
        ["models"] => (Endpoint::Models, true, false),
        ["models", "stats"] => (Endpoint::AllStatistics, true, false),
        ["trace", "setting"] => (Endpoint::Trace { model: "", change: post }, true, true),
        ["logging"] => (Endpoint::Logging { change: post }, true, true),
        ["models", model, "trace", "setting"] => {
            (Endpoint::Trace { model, change: post }, true, true)
        }
        ["models", name, "versions", version, rest @ ..] if is_number(version) => {
            model(name, version, rest)?
        }
        ["models", name, rest @ ..] => model(name, "", rest)?,
        ["repository", "index"] => (Endpoint::Index { repository: "" }, false, true),
        ["repository", repository, "index"] => (Endpoint::Index { repository }, false, true),
        ["repository", "models", name, act @ ("load" | "unload")] => {
            (Endpoint::Control { repository: "", name, load: *act == "load" }, false, true)
        }
        ["repository", repository, "models", name, act @ ("load" | "unload")] => {
            (Endpoint::Control { repository, name, load: *act == "load" }, false, true)
        }
        ["systemsharedmemory", rest @ ..] => region(RegionKind::System, rest)?,
        ["cudasharedmemory", rest @ ..] => region(RegionKind::Cuda, rest)?,
        _ => return None,
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn model<'a>(name: &'a str, version: &'a str, rest: &[&str]) -> Option<(Endpoint<'a>, bool, bool)> {
    let (call, post) = match rest {
        [] => (ModelEndpoint::Metadata, false),
        ["ready"] => (ModelEndpoint::Ready, false),
        ["config"] => (ModelEndpoint::Config, false),
        ["docs"] => (ModelEndpoint::Description, false),
        ["stats"] => (ModelEndpoint::Statistics, false),
        ["infer"] => (ModelEndpoint::Infer, true),
        ["generate"] => (ModelEndpoint::Generate { streams: false }, true),
        ["generate_stream"] => (ModelEndpoint::Generate { streams: true }, true),
        _ => return None,
    };
    Some((Endpoint::Model { name, version, call }, !post, post))
}

fn region<'a>(kind: RegionKind, rest: &[&'a str]) -> Option<(Endpoint<'a>, bool, bool)> {
    let (region, call) = match rest {
        [call] => ("", *call),
        ["region", region, call] => (*region, *call),
        _ => return None,
    };
    let call = match call {
        "status" => RegionAction::Status,
        "register" => RegionAction::Register,
        "unregister" => RegionAction::Unregister,
        _ => return None,
    };
    let get = call == RegionAction::Status;
    Some((Endpoint::SharedMemory { kind, region, call }, get, !get))
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
