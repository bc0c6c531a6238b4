//! Unit tests of `route.rs`.

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
        ("GET /v2/trtserver/backends", Ok(Route::Backends)),
        ("POST /v2/trtserver/backends", Err(405)),
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
        ("POST /v2/systemsharedmemory/region/r/register", region("system", "r", Region::Register)),
        ("GET /v2/systemsharedmemory/register", Err(405)),
        ("POST /v2/cudasharedmemory/unregister", region("cuda", "", Region::Unregister)),
    ];
    for (line, want) in table {
        let (method, path) = line.split_once(' ').unwrap();
        let got = route(&method.parse().unwrap(), path).map_err(|(s, _)| s.as_u16());
        assert_eq!(&got, want, "{line}");
    }
}
