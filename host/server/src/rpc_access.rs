//! What the access check must know of a gRPC call: of its path, and of its message once that has
//! arrived.

use trtserver_config::{AccessedModels, ApiGroup};
use trtserver_frontend_v1::grpc::region_request::read_region_request;
use trtserver_proto_wire::{Fields, WireValue};
use trtserver_wire::access::{ALL, EndpointAccess, groups_of_rpc};

/// The fields that name what a call is about. Of several values the last one counts, as in the
/// messages themselves.
#[derive(Default)]
struct NamingFields<'m> {
    first: Option<&'m [u8]>,
    second: Option<&'m [u8]>,
    second_number: u64,
}

/// A call whose message has not arrived. It needs at least the right to read.
pub fn access_of_path(path: &str) -> EndpointAccess<'static> {
    let (groups, method) = (groups_of_rpc(path), method_of(path));
    match changed_by(groups, method) {
        Some(what) => EndpointAccess::for_control(groups, AccessedModels::Unknown, what, ""),
        None => EndpointAccess::for_models(groups, AccessedModels::Unknown),
    }
}

/// A call with its message. A message that cannot be read here cannot be read by the service
/// either.
///
/// # Errors
/// Why it cannot be read.
pub fn access_of_message<'m>(path: &str, message: &'m [u8]) -> Result<EndpointAccess<'m>, String> {
    use AccessedModels::{All, None};
    let (groups, method) = (groups_of_rpc(path), method_of(path));
    if method == "SharedMemoryControl" {
        let call = read_region_request(message)?;
        return Ok(call.map_or(EndpointAccess::for_models(groups, None), |call| call.access()));
    }
    let fields = NamingFields::read(message)?;
    let for_models = |models| EndpointAccess::for_models(groups, models);
    if let Some(what) = changed_by(groups, method) {
        let (models, subject) = match method {
            "RepositoryModelLoad" | "RepositoryModelUnload" => {
                let model = text(fields.second)?;
                (AccessedModels::from_name(model), model)
            }
            "ModelControl" => {
                let model = text(fields.first)?;
                (AccessedModels::from_name(model), model)
            }
            _ if groups == [ApiGroup::SharedMemory] => (None, text(fields.first)?),
            _ if groups == ALL => (All, ""),
            _ => (None, ""),
        };
        let what = match (method, fields.second_number) {
            ("ModelControl", 1) => "load model",
            ("ModelControl", _) => "unload model",
            _ => what,
        };
        return Ok(EndpointAccess::for_control(groups, models, what, subject));
    }
    // A map of settings: without any the call reads them.
    let changes = fields.first.is_some();
    Ok(match method {
        "ModelReady" | "ModelMetadata" | "ModelConfig" | "ModelStatistics" | "Status" => {
            for_models(AccessedModels::from_name(text(fields.first)?))
        }
        "RepositoryIndex" | "Repository" => for_models(All),
        "TraceSetting" => {
            let model = text(fields.second)?;
            let models = AccessedModels::from_name(model);
            match changes {
                true => EndpointAccess::for_control(groups, models, "change trace settings", model),
                false => for_models(models),
            }
        }
        "LogSettings" if changes => {
            EndpointAccess::for_control(groups, None, "change log settings", "")
        }
        _ => for_models(None),
    })
}

fn method_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// What a method changes whatever its message says; `None` if that decides.
fn changed_by(groups: &[ApiGroup], method: &str) -> Option<&'static str> {
    Some(match method {
        "RepositoryModelLoad" => "load model",
        "RepositoryModelUnload" => "unload model",
        "ModelControl" => "load or unload model",
        "Profile" => "control the profiler",
        "SystemSharedMemoryRegister" | "CudaSharedMemoryRegister" => "register shared memory",
        "SystemSharedMemoryUnregister" | "CudaSharedMemoryUnregister" => "unregister shared memory",
        _ if groups == ALL => "call an unknown method",
        _ => return None,
    })
}

impl<'m> NamingFields<'m> {
    fn read(message: &'m [u8]) -> Result<Self, String> {
        let mut read = Self::default();
        for field in Fields::new(message) {
            let field = field.map_err(|e| e.to_string())?;
            match (field.number, field.value) {
                (1, WireValue::Bytes(bytes)) => read.first = Some(bytes),
                (2, WireValue::Bytes(bytes)) => read.second = Some(bytes),
                (2, WireValue::Varint(number)) => read.second_number = number,
                _ => {}
            }
        }
        Ok(read)
    }
}

fn text(bytes: Option<&[u8]>) -> Result<&str, String> {
    std::str::from_utf8(bytes.unwrap_or_default()).map_err(|_| "a name is not UTF-8".to_owned())
}

#[cfg(test)]
#[path = "rpc_access_tests.rs"]
mod tests;
