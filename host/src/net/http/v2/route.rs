//! From method and path to an endpoint. Paths are matched whole and as written: no trailing slash,
//! no percent-decoding.

use http::{Method, StatusCode};

/// An endpoint, with the names that stand in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    Server,
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
mod tests {
    use super::*;

    #[test]
    fn paths() {
        const UNKNOWN: Result<Route<'_>, u16> = Err(404);
        let m = |name, version, call| Ok(Route::Model { name, version, call });
        let region = |kind, region, call| Ok(Route::SharedMemory { kind, region, call });
        let table: &[(&str, Result<Route<'_>, u16>)] = &[
            ("GET /v2", Ok(Route::Server)),
            ("GET /v2/", UNKNOWN),
            ("GET /v3", UNKNOWN),
            ("GET /v2x", UNKNOWN),
            ("POST /v2", Err(405)),
            ("GET /v2/health/live", Ok(Route::Live)),
            ("GET /v2/health/ready", Ok(Route::Ready)),
            ("GET /v2/health/ready/", UNKNOWN),
            ("GET /v2/models/a%20b", m("a%20b", "", Call::Metadata)),
            ("GET /v2/models/stats", Ok(Route::AllStatistics)),
            ("GET /v2/models/stats/stats", m("stats", "", Call::Statistics)),
            ("GET /v2/models/m/versions/3", m("m", "3", Call::Metadata)),
            ("GET /v2/models/m/versions/x", UNKNOWN),
            ("GET /v2/models/m/versions", UNKNOWN),
            ("GET /v2/models/m/versions/3/config", m("m", "3", Call::Config)),
            ("POST /v2/models/m/versions/3/infer", m("m", "3", Call::Infer)),
            ("POST /v2/models/m/infer", m("m", "", Call::Infer)),
            ("GET /v2/models/m/infer", Err(405)),
            ("PUT /v2/models/m/infer", Err(405)),
            ("POST /v2/models/m/generate_stream", m("m", "", Call::Generate)),
            ("GET /v2/models/m/ready", m("m", "", Call::Ready)),
            ("GET /v2/models//ready", UNKNOWN),
            ("GET /v2/trace/setting", Ok(Route::Trace { model: "", change: false })),
            ("POST /v2/models/m/trace/setting", Ok(Route::Trace { model: "m", change: true })),
            ("GET /v2/models/m/versions/1/trace/setting", UNKNOWN),
            ("POST /v2/logging", Ok(Route::Logging { change: true })),
            ("POST /v2/repository/index", Ok(Route::Index)),
            ("GET /v2/repository/index", Err(405)),
            ("POST /v2/repository/r/index", Ok(Route::Index)),
            (
                "POST /v2/repository/models/m/load",
                Ok(Route::Control { repository: "", name: "m", load: true }),
            ),
            (
                "POST /v2/repository/r/models/m/unload",
                Ok(Route::Control { repository: "r", name: "m", load: false }),
            ),
            ("GET /v2/systemsharedmemory/status", region("system", "", Region::Status)),
            ("GET /v2/cudasharedmemory/region/r/status", region("cuda", "r", Region::Status)),
            (
                "POST /v2/systemsharedmemory/region/r/register",
                region("system", "r", Region::Register),
            ),
            ("GET /v2/systemsharedmemory/register", Err(405)),
            ("POST /v2/cudasharedmemory/unregister", region("cuda", "", Region::Unregister)),
        ];
        for (line, want) in table {
            let (method, path) = line.split_once(' ').unwrap();
            let got = route(&method.parse().unwrap(), path).map_err(|(s, _)| s.as_u16());
            assert_eq!(&got, want, "{line}");
        }
    }
}
