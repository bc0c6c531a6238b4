//! Unit tests of `endpoint.rs`.

use super::*;
use trtserver_api_description::{ROUTES_V1, RouteSpec};
use trtserver_wire::http::route_testing::{compare, compare_table};

#[test]
fn path_selects_the_endpoint() {
    let infer = |model, version| Some(Endpoint::Infer { model, version });
    let call = |control| Some(Endpoint::Control(control));
    let register = |key, offset, byte_size| {
        let name = "n";
        let register = RegionControl::Register { name, key, offset, byte_size };
        Some(Endpoint::Control(ControlEndpoint::Regions(register)))
    };
    let table = [
        ("/api/health", call(ControlEndpoint::Health(""))),
        ("/api/health/live", call(ControlEndpoint::Health("live"))),
        ("/api/health/ready", call(ControlEndpoint::Health("ready"))),
        ("/api/health/", None),
        ("/api/health/foo", None),
        ("/api/health/live/", None),
        ("/api/healthy", None),
        ("/api", None),
        ("/api/", None),
        ("/api/status", call(ControlEndpoint::Status(None))),
        ("/api/status/", call(ControlEndpoint::Status(None))),
        ("/api/status/m", call(ControlEndpoint::Status(Some("m")))),
        ("/api/status/a/b%20/", call(ControlEndpoint::Status(Some("a/b%20/")))),
        ("/api/profile", call(ControlEndpoint::Profile)),
        ("/api/profile/", call(ControlEndpoint::Profile)),
        ("/api/profile/x", None),
        ("/api/infer", infer("", RequestedVersion::Latest)),
        ("/api/infer/", None),
        ("/api/infer/m", infer("m", RequestedVersion::Latest)),
        ("/api/infer/m/0", infer("m", RequestedVersion::Exact(0))),
        ("/api/infer/m/007", infer("m", RequestedVersion::Exact(7))),
        ("/api/infer/m/99999999999999999999", infer("m", RequestedVersion::Exact(i64::MAX))),
        ("/api/infer/m%2F", infer("m%2F", RequestedVersion::Latest)),
        ("/api/infer/m/", None),
        ("/api/infer/m/x", None),
        ("/api/infer/m/-1", None),
        ("/api/infer/a/b", None),
        ("/api/infer/m/1/", None),
        ("/api/modelcontrol/load/m", call(ControlEndpoint::Model("m", Change::Load))),
        ("/api/modelcontrol/unload/m", call(ControlEndpoint::Model("m", Change::Unload))),
        ("/api/modelcontrol/reload/m", None),
        ("/api/modelcontrol/load", None),
        ("/api/sharedmemorycontrol/status", call(ControlEndpoint::Regions(RegionControl::Status))),
        (
            "/api/sharedmemorycontrol/unregisterall",
            call(ControlEndpoint::Regions(RegionControl::UnregisterAll)),
        ),
        (
            "/api/sharedmemorycontrol/unregister/n",
            call(ControlEndpoint::Regions(RegionControl::Unregister { name: "n" })),
        ),
        ("/api/sharedmemorycontrol/register/n//key/0/64", register("/key", 0, 64)),
        ("/api/sharedmemorycontrol/register/n/key/1/2", register("key", 1, 2)),
        (
            "/api/sharedmemorycontrol/register/n//k%2Fy/18446744073709551615/007",
            register("/k%2Fy", u64::MAX, 7),
        ),
        (
            "/api/sharedmemorycontrol/cudaregister/n/64/3",
            call(ControlEndpoint::Regions(RegionControl::RegisterCuda {
                name: "n",
                memory: CudaMemory { handle: &[], device_id: 3, byte_size: 64 },
            })),
        ),
        ("/api/sharedmemorycontrol/register/n/64", None),
        ("/api/sharedmemorycontrol/register/n//key/a/64", None),
        ("/api/sharedmemorycontrol/register/n//key/-1/64", None),
        ("/api/sharedmemorycontrol/register/n//key/0/-64", None),
        ("/api/sharedmemorycontrol/register/n//key/+1/64", None),
        ("/api/sharedmemorycontrol/register/n//key//64", None),
        ("/api/sharedmemorycontrol/register/n//key/18446744073709551616/64", None),
        ("/api/sharedmemorycontrol/register/n//a/key/0/64", None),
        ("/api/sharedmemorycontrol/register/n///key/0/64", None),
        ("/api/sharedmemorycontrol/register/n///0/64", None),
        ("/api/sharedmemorycontrol/register///key/0/64", None),
        ("/api/sharedmemorycontrol/register/n//key/0/64/", None),
        ("/api/sharedmemorycontrol/unregister/", None),
        ("/api/sharedmemorycontrol/cudaregister/n/-64/0", None),
        ("/api/repository/index", call(ControlEndpoint::Index)),
        ("/api/repository", None),
        ("/api/v1/models", None),
    ];
    for (path, want) in table {
        assert_eq!(Endpoint::from_path(path), want, "{path}");
    }
}

#[test]
fn query_parameters_are_percent_decoded() {
    for (text, want) in [
        (None, None),
        (Some(""), None),
        (Some("format=binary"), Some("binary")),
        (Some("x=1&format=%62inary&format=json"), Some("binary")),
        (Some("format"), Some("")),
        (Some("%66ormat=100%"), Some("100%")),
        (Some("format=%zz%C3%A9"), Some("%zzé")),
    ] {
        assert_eq!(query_value(text, "format").as_deref(), want, "{text:?}");
    }
}

fn is_accepted(method: &Method, path: &str) -> bool {
    let endpoint = Endpoint::from_path(path).filter(|endpoint| endpoint.method() == *method);
    // No model has a slash in its name.
    let longer = |model: &str| model.contains('/');
    match endpoint {
        Some(Endpoint::Control(ControlEndpoint::Status(model))) => !model.is_some_and(longer),
        found => found.is_some(),
    }
}

#[test]
fn compatibility_page_has_every_route() {
    compare("v1.md", "/api", include_str!("endpoint.rs"), is_accepted);
}

#[test]
fn description_has_every_route_with_its_groups() {
    let routes = RouteSpec::pairs(ROUTES_V1);
    compare_table("api-description", &routes, "/api", include_str!("endpoint.rs"), is_accepted);
    for route in ROUTES_V1 {
        for (path, id) in route.paths() {
            let number = |path: String, name: &str| path.replace(name, "1");
            let path =
                ["{version}", "{offset}", "{size}", "{device}"].into_iter().fold(path, number);
            let endpoint = Endpoint::from_path(&path).unwrap();
            let groups: Vec<&str> = endpoint.groups().iter().map(|group| group.name()).collect();
            assert_eq!(
                (groups.as_slice(), endpoint.method().as_str()),
                (route.groups, route.method),
                "{id}"
            );
        }
    }
}
