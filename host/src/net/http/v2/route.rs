//! From method and path to an endpoint. Paths are matched whole and as written: no trailing slash,
//! no percent-decoding.

use http::{Method, StatusCode};

/// An endpoint, with the names that stand in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    Server,
    /// Not of the protocol, but ours.
    Backends,
    Live,
    Ready,
    /// `version` is empty when the path has none.
    Model {
        name: &'a str,
        version: &'a str,
        call: Call,
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
    Index,
    Control {
        repository: &'a str,
        name: &'a str,
        load: bool,
    },
    /// `kind` is `system` or `cuda`; an empty region means all.
    SharedMemory {
        kind: &'static str,
        region: &'a str,
        call: Region,
    },
}

/// What is asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Metadata,
    Ready,
    Infer,
    Generate,
    Config,
    Statistics,
}

/// What is asked of shared memory regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    Status,
    Register,
    Unregister,
}

/// 404 for an unknown path, 405 for a known one with the wrong method; and whether the endpoint answers
/// in JSON.
pub fn route<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, (StatusCode, bool)> {
    let found = find(path, method == Method::POST);
    let (route, get, post) = found.ok_or((StatusCode::NOT_FOUND, false))?;
    let fits = (get && method == Method::GET) || (post && method == Method::POST);
    if fits { Ok(route) } else { Err((StatusCode::METHOD_NOT_ALLOWED, route.is_json())) }
}

impl Route<'_> {
    /// Health has no body, and that of an inference is not always JSON.
    fn is_json(&self) -> bool {
        use Route::*;
        !matches!(self, Live | Ready | Model { call: Call::Ready | Call::Infer, .. })
    }
}

/// The endpoint of a path, and whether it takes GET and POST.
fn find(path: &str, post: bool) -> Option<(Route<'_>, bool, bool)> {
    let rest = path.strip_prefix("/v2")?;
    if rest.is_empty() {
        return Some((Route::Server, true, false));
    }
    let segments: smallvec::SmallVec<[&str; 8]> = rest.strip_prefix('/')?.split('/').collect();
    if segments.iter().any(|s| s.is_empty()) {
        return None;
    }
    Some(match segments.as_slice() {
        ["health", "live"] => (Route::Live, true, false),
        ["health", "ready"] => (Route::Ready, true, false),
        ["trtserver", "backends"] => (Route::Backends, true, false),
        ["models", "stats"] => (Route::AllStatistics, true, false),
        ["trace", "setting"] => (Route::Trace { model: "", change: post }, true, true),
        ["logging"] => (Route::Logging { change: post }, true, true),
        ["models", model, "trace", "setting"] => (Route::Trace { model, change: post }, true, true),
        ["models", name, "versions", version, rest @ ..] if is_number(version) => {
            model(name, version, rest)?
        }
        ["models", name, rest @ ..] => model(name, "", rest)?,
        ["repository", "index"] | ["repository", _, "index"] => (Route::Index, false, true),
        ["repository", "models", name, act @ ("load" | "unload")] => {
            (Route::Control { repository: "", name, load: *act == "load" }, false, true)
        }
        ["repository", repository, "models", name, act @ ("load" | "unload")] => {
            (Route::Control { repository, name, load: *act == "load" }, false, true)
        }
        ["systemsharedmemory", rest @ ..] => region("system", rest)?,
        ["cudasharedmemory", rest @ ..] => region("cuda", rest)?,
        _ => return None,
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn model<'a>(name: &'a str, version: &'a str, rest: &[&str]) -> Option<(Route<'a>, bool, bool)> {
    let (call, post) = match rest {
        [] => (Call::Metadata, false),
        ["ready"] => (Call::Ready, false),
        ["config"] => (Call::Config, false),
        ["stats"] => (Call::Statistics, false),
        ["infer"] => (Call::Infer, true),
        ["generate" | "generate_stream"] => (Call::Generate, true),
        _ => return None,
    };
    Some((Route::Model { name, version, call }, !post, post))
}

fn region<'a>(kind: &'static str, rest: &[&'a str]) -> Option<(Route<'a>, bool, bool)> {
    let (region, call) = match rest {
        [call] => ("", *call),
        ["region", region, call] => (*region, *call),
        _ => return None,
    };
    let call = match call {
        "status" => Region::Status,
        "register" => Region::Register,
        "unregister" => Region::Unregister,
        _ => return None,
    };
    let get = call == Region::Status;
    Some((Route::SharedMemory { kind, region, call }, get, !get))
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
