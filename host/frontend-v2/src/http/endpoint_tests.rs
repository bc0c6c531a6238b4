//! Unit tests of `endpoint.rs`.

use super::*;
use trtserver_api_description::{ROUTES_V2, RouteSpec};
use trtserver_wire::http::route_testing::{compare, compare_table};

#[test]
fn method_and_path_select_the_endpoint() {
    const UNKNOWN: Result<Endpoint<'_>, u16> = Err(404);
    let m = |name, version, call| Ok(Endpoint::Model { name, version, call });
    let region = |kind, region, call| Ok(Endpoint::SharedMemory { kind, region, call });
    let table: &[(&str, Result<Endpoint<'_>, u16>)] = &[
        ("GET /v2", Ok(Endpoint::Server)),
        ("GET /v2/", UNKNOWN),
        ("GET /v2/docs", Ok(Endpoint::Description)),
        ("POST /v2/docs", Err(405)),
        ("GET /v2/models/m/docs", m("m", "", ModelEndpoint::Description)),
        ("GET /v2/models/m/versions/3/docs", m("m", "3", ModelEndpoint::Description)),
        ("GET /v3", UNKNOWN),
        ("GET /v2x", UNKNOWN),
        ("POST /v2", Err(405)),
        ("GET /v2/trtserver/backends", Ok(Endpoint::Backends)),
        ("POST /v2/trtserver/backends", Err(405)),
        ("GET /v2/trtserver/loads", Ok(Endpoint::Loads)),
        ("POST /v2/trtserver/loads", Err(405)),
        ("GET /v2/trtserver/memory", Ok(Endpoint::Memory)),
        ("GET /v2/trtserver/status", Ok(Endpoint::Status)),
        ("GET /v2/trtserver/status/events", Ok(Endpoint::StatusEvents)),
        ("POST /v2/trtserver/status", Err(405)),
        ("GET /v2/trtserver/changes", Ok(Endpoint::Changes)),
        ("GET /v2/trtserver/log", Ok(Endpoint::Log)),
        (
            "GET /v2/trtserver/models/m/configuration",
            Ok(Endpoint::Configuration { name: "m", version: "" }),
        ),
        (
            "GET /v2/trtserver/models/m/versions/3/configuration",
            Ok(Endpoint::Configuration { name: "m", version: "3" }),
        ),
        ("GET /v2/trtserver/models/m/versions/x/configuration", UNKNOWN),
        ("GET /v2/trtserver/rate-limiter", Ok(Endpoint::RateLimiter)),
        ("GET /v2/trtserver/requests", Ok(Endpoint::Requests)),
        ("GET /v2/trtserver/requests/a%2Fb", Ok(Endpoint::Request { id: "a%2Fb" })),
        ("POST /v2/trtserver/memory", Err(405)),
        ("POST /v2/trtserver/rate-limiter", Err(405)),
        ("GET /v2/trtserver/health", Ok(Endpoint::Health)),
        ("GET /v2/trtserver/health/started", Ok(Endpoint::Started)),
        ("POST /v2/trtserver/health", Err(405)),
        ("GET /v2/health/live", Ok(Endpoint::Live)),
        ("GET /v2/health/ready", Ok(Endpoint::Ready)),
        ("GET /v2/health/ready/", UNKNOWN),
        ("GET /v2/models/a%20b", m("a%20b", "", ModelEndpoint::Metadata)),
        ("GET /v2/models", Ok(Endpoint::Models)),
        ("POST /v2/models", Err(405)),
        ("GET /v2/models/", UNKNOWN),
        ("GET /v2/models/stats", Ok(Endpoint::AllStatistics)),
        ("GET /v2/models/stats/stats", m("stats", "", ModelEndpoint::Statistics)),
        ("GET /v2/models/m/versions/3", m("m", "3", ModelEndpoint::Metadata)),
        ("GET /v2/models/m/versions/x", UNKNOWN),
        ("GET /v2/models/m/versions", UNKNOWN),
        ("GET /v2/models/m/versions/3/config", m("m", "3", ModelEndpoint::Config)),
        ("POST /v2/models/m/versions/3/infer", m("m", "3", ModelEndpoint::Infer)),
        ("POST /v2/models/m/infer", m("m", "", ModelEndpoint::Infer)),
        ("GET /v2/models/m/infer", Err(405)),
        ("PUT /v2/models/m/infer", Err(405)),
        (
            "POST /v2/models/m/generate_stream",
            m("m", "", ModelEndpoint::Generate { streams: true }),
        ),
        ("GET /v2/models/m/ready", m("m", "", ModelEndpoint::Ready)),
        ("GET /v2/models//ready", UNKNOWN),
        ("GET /v2/trace/setting", Ok(Endpoint::Trace { model: "", change: false })),
        ("POST /v2/models/m/trace/setting", Ok(Endpoint::Trace { model: "m", change: true })),
        ("GET /v2/models/m/versions/1/trace/setting", UNKNOWN),
        ("POST /v2/logging", Ok(Endpoint::Logging { change: true })),
        ("POST /v2/repository/index", Ok(Endpoint::Index { repository: "" })),
        ("GET /v2/repository/index", Err(405)),
        ("POST /v2/repository/r/index", Ok(Endpoint::Index { repository: "r" })),
        (
            "POST /v2/repository/models/m/load",
            Ok(Endpoint::Control { repository: "", name: "m", load: true }),
        ),
        (
            "POST /v2/repository/r/models/m/unload",
            Ok(Endpoint::Control { repository: "r", name: "m", load: false }),
        ),
        ("GET /v2/systemsharedmemory/status", region(RegionKind::System, "", RegionAction::Status)),
        (
            "GET /v2/cudasharedmemory/region/r/status",
            region(RegionKind::Cuda, "r", RegionAction::Status),
        ),
        (
            "POST /v2/systemsharedmemory/region/r/register",
            region(RegionKind::System, "r", RegionAction::Register),
        ),
        ("GET /v2/systemsharedmemory/register", Err(405)),
        (
            "POST /v2/cudasharedmemory/unregister",
            region(RegionKind::Cuda, "", RegionAction::Unregister),
        ),
    ];
    for (line, want) in table {
        let (method, path) = line.split_once(' ').unwrap();
        let got =
            Endpoint::from_request(&method.parse().unwrap(), path).map_err(|(s, _)| s.as_u16());
        assert_eq!(&got, want, "{line}");
    }
}

#[test]
fn compatibility_page_has_every_route() {
    compare("v2.md", "/v2", include_str!("endpoint.rs"), |method, path| {
        Endpoint::from_request(method, path).is_ok()
    });
}

#[test]
fn description_has_every_route_with_its_groups() {
    let routes = RouteSpec::pairs(ROUTES_V2);
    compare_table(
        "api-description",
        &routes,
        "/v2",
        include_str!("endpoint.rs"),
        |method, path| Endpoint::from_request(method, path).is_ok(),
    );
    for route in ROUTES_V2 {
        for (path, id) in route.paths() {
            let path = path.replace("{version}", "1");
            let method = route.method.parse().unwrap();
            let endpoint = Endpoint::from_request(&method, &path).unwrap();
            let groups: Vec<&str> = endpoint.groups().iter().map(|group| group.name()).collect();
            assert_eq!(groups, route.groups, "{id}: {path}");
        }
    }
}
