//! The endpoint of a v1 path (docs/protocol/v1.md §3.1). Paths are not percent-decoded, slashes are
//! not merged.

use crate::control::Change;
use crate::regions::RegionControl;
use crate::request::RequestedVersion;
use http::Method;
use smallvec::SmallVec;
use std::borrow::Cow;
use trtserver_config::{AccessedModels, ApiGroup};
use trtserver_wire::access::{EndpointAccess, STATUS_V1};
use trtserver_wire::shared_memory::CudaMemory;

/// An endpoint, with the names in its path.
#[derive(Debug, PartialEq)]
pub enum Endpoint<'a> {
    Infer { model: &'a str, version: RequestedVersion },
    Control(ControlEndpoint<'a>),
}

/// All endpoints but inference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControlEndpoint<'a> {
    /// The mode; empty if the path has none.
    Health(&'a str),
    /// One model, or all.
    Status(Option<&'a str>),
    Profile,
    Model(&'a str, Change),
    Regions(RegionControl<'a>),
    Index,
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a path, which must match as a whole.
    pub fn from_path(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix("/api/")?;
        let (endpoint, rest) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let control = match endpoint {
            "health" => match rest {
                "" | "/live" | "/ready" => ControlEndpoint::Health(rest.trim_start_matches('/')),
                _ => return None,
            },
            "status" => ControlEndpoint::Status(rest.strip_prefix('/').filter(|m| !m.is_empty())),
            "profile" if matches!(rest, "" | "/") => ControlEndpoint::Profile,
            "infer" => return infer(rest),
            "modelcontrol" => {
                let (action, model) = rest.strip_prefix('/')?.split_once('/')?;
                let change = match action {
                    "load" => Change::Load,
                    "unload" => Change::Unload,
                    _ => return None,
                };
                if !is_name(model) {
                    return None;
                }
                ControlEndpoint::Model(model, change)
            }
            "sharedmemorycontrol" => ControlEndpoint::Regions(regions(rest.strip_prefix('/')?)?),
            "repository" if rest == "/index" => ControlEndpoint::Index,
            _ => return None,
        };
        Some(Endpoint::Control(control))
    }

    /// What the access check must know.
    pub fn access(&self) -> EndpointAccess<'a> {
        match *self {
            Endpoint::Infer { model, .. } => {
                EndpointAccess::for_models(self.groups(), AccessedModels::from_name(model))
            }
            Endpoint::Control(call) => call.access(),
        }
    }

    /// The groups for restrictions and scopes.
    pub fn groups(&self) -> &'static [ApiGroup] {
        match self {
            Endpoint::Infer { .. } => &[ApiGroup::Inference],
            Endpoint::Control(call) => call.groups(),
        }
    }

    /// The only method that the endpoint accepts.
    pub fn method(&self) -> Method {
        match self {
            Endpoint::Infer { .. } | Endpoint::Control(ControlEndpoint::Model(..)) => Method::POST,
            Endpoint::Control(ControlEndpoint::Regions(c)) if *c != RegionControl::Status => {
                Method::POST
            }
            _ => Method::GET,
        }
    }
}

impl<'a> ControlEndpoint<'a> {
    fn groups(&self) -> &'static [ApiGroup] {
        match self {
            ControlEndpoint::Health(_) => &[ApiGroup::Health],
            ControlEndpoint::Status(_) => STATUS_V1,
            ControlEndpoint::Profile => &[ApiGroup::Trace],
            ControlEndpoint::Model(..) | ControlEndpoint::Index => &[ApiGroup::ModelRepository],
            ControlEndpoint::Regions(_) => &[ApiGroup::SharedMemory],
        }
    }

    /// What the access check must know.
    pub fn access(&self) -> EndpointAccess<'a> {
        use AccessedModels::{All, Named, None};
        let groups = self.groups();
        let for_models = |models| EndpointAccess::for_models(groups, models);
        match *self {
            ControlEndpoint::Health(_) => for_models(None),
            ControlEndpoint::Status(model) => {
                for_models(AccessedModels::from_name(model.unwrap_or_default()))
            }
            ControlEndpoint::Profile => {
                EndpointAccess::for_control(groups, None, "control the profiler", "")
            }
            ControlEndpoint::Model(name, change) => {
                EndpointAccess::for_control(groups, Named(name), change.audited(), name)
            }
            ControlEndpoint::Index => for_models(All),
            ControlEndpoint::Regions(call) => call.access(),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

/// A path without a model has an empty name, which no model has.
fn infer(rest: &str) -> Option<Endpoint<'_>> {
    let Some(rest) = rest.strip_prefix('/') else {
        return Some(Endpoint::Infer { model: "", version: RequestedVersion::Latest });
    };
    let Some((model, version)) = rest.split_once('/') else {
        return is_name(rest)
            .then_some(Endpoint::Infer { model: rest, version: RequestedVersion::Latest });
    };
    let digits = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    // A number too large for a version is an unknown version.
    let version = RequestedVersion::Exact(version.parse().unwrap_or(i64::MAX));
    (is_name(model) && digits).then_some(Endpoint::Infer { model, version })
}

fn regions(rest: &str) -> Option<RegionControl<'_>> {
    let number =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?;
    let parts: SmallVec<[&str; 8]> = rest.split('/').collect();
    match parts[..] {
        ["status"] => Some(RegionControl::Status),
        ["unregisterall"] => Some(RegionControl::UnregisterAll),
        ["unregister", name] if is_name(name) => Some(RegionControl::Unregister { name }),
        // A key may begin with a slash of its own.
        ["register", name, ref slash @ .., key, offset, size]
            if is_name(name) && is_name(key) && matches!(slash, [] | [""]) =>
        {
            let start = "register/".len() + name.len() + 1;
            let key = &rest[start..start + slash.len() + key.len()];
            let (offset, byte_size) = (number(offset)?, number(size)?);
            Some(RegionControl::Register { name, key, offset, byte_size })
        }
        ["cudaregister", name, size, device] if is_name(name) => {
            // The handle is the body.
            let (byte_size, device_id) = (number(size)?, number(device)?);
            let memory = CudaMemory { handle: &[], device_id, byte_size };
            Some(RegionControl::RegisterCuda { name, memory })
        }
        _ => None,
    }
}

/// The first value of a query parameter, percent-decoded.
pub fn query_value<'q>(query: Option<&'q str>, name: &str) -> Option<Cow<'q, str>> {
    query?.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key) == name).then(|| decoded(value))
    })
}

fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let hex = |b: &[u8]| u8::from_str_radix(std::str::from_utf8(b).ok()?, 16).ok();
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = (byte == b'%').then(|| tail.get(..2).and_then(hex)).flatten();
        out.push(code.unwrap_or(byte));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
