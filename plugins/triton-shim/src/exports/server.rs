//! `TRITONSERVER_Server*`: the models of the server, as the backend of a model reaches them.

use super::guard::{Maybe, Out, OutMaybe, Text, export, read_array};
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject};
use crate::host::{as_str, take_error};
use crate::nested;
use crate::objects::parameter::ParameterObject;
use crate::objects::request::RequestObject;
use crate::objects::server::ServerToken;
use crate::objects::trace::TraceObject;
use std::ffi::c_void;
use std::ptr;
use trtserver_plugin_api::abi::types::{Param, code};

/// Transaction properties: one response to each request, or any number.
const ONE_TO_ONE: u32 = 1;
const DECOUPLED: u32 = 2;

fn load(server: &ServerToken, name: Text, params: &[LiveObject<ParameterObject>]) -> Result<()> {
    let params: Vec<Param> = params.iter().map(|p| p.value.param(as_str(&p.name))).collect();
    nested::with_extension(&*server.model()?, |extension, host, scope| {
        let (p, n) = (params.as_ptr(), params.len() as u32);
        // SAFETY: the scope is open, texts and parameters are valid during the call; an error is
        // owned by the caller.
        unsafe { take_error(host, (extension.model_load)(scope, as_str(name.c()), p, n)) }
    })
}

fn unload(server: &ServerToken, name: Text, dependents: bool) -> Result<()> {
    nested::with_extension(&*server.model()?, |extension, host, scope| {
        let (name, dependents) = (as_str(name.c()), u32::from(dependents));
        // SAFETY: the scope is open and the name is valid during the call; the caller owns a
        // returned error.
        unsafe { take_error(host, (extension.model_unload)(scope, name, dependents)) }
    })
}

export! {
    /// Sends a request to its model. After an error it stays the caller's; otherwise the callbacks
    /// get the responses, and at last the request, on other threads, perhaps before this returns.
    fn TRITONSERVER_ServerInferAsync(
        server: LiveObject<ServerToken>,
        inference_request: LiveObject<RequestObject>,
        _trace: Maybe<TraceObject>,
    ) {
        server.model()?;
        nested::send_request(inference_request)?;
    }

    /// Whether a version of a model, with -1 the one that clients reach without a number, would
    /// execute a request now.
    fn TRITONSERVER_ServerModelIsReady(
        server: LiveObject<ServerToken>,
        model_name: Text,
        model_version: i64,
        ready: Out<u8>,
    ) {
        ready.set(match nested::model_status(&*server.model()?, model_name.c(), model_version) {
            Ok(status) => (status.ready != 0).into(),
            Err(fault) if fault.code == code::NOT_FOUND => 0,
            Err(fault) => return Err(fault),
        });
    }

    /// Whether a request to the model gets one response or any number.
    fn TRITONSERVER_ServerModelTransactionProperties(
        server: LiveObject<ServerToken>,
        model_name: Text,
        model_version: i64,
        txn_flags: Out<u32>,
        voidp: OutMaybe<*mut c_void>,
    ) {
        let status = nested::model_status(&*server.model()?, model_name.c(), model_version)?;
        if status.version == 0 {
            let name = model_name.text();
            return Err(TritonFault::unavailable(format_args!("model '{name}' does not serve")));
        }
        txn_flags.set(if status.decoupled != 0 { DECOUPLED } else { ONE_TO_ONE });
        voidp.set(ptr::null_mut());
    }

    /// Loads a model, or loads it again, and waits for the end.
    fn TRITONSERVER_ServerLoadModel(server: LiveObject<ServerToken>, model_name: Text) {
        load(&server, model_name, &[])?;
    }

    /// The same, with a configuration and files in place of those of the repository. The parameters
    /// stay the caller's.
    fn TRITONSERVER_ServerLoadModelWithParameters(
        server: LiveObject<ServerToken>,
        model_name: Text,
        parameters: *const c_void,
        parameter_count: u64,
    ) {
        // SAFETY: the caller passes that many handles.
        let raw = unsafe { read_array(parameters.cast::<*mut ParameterObject>(), parameter_count, "parameters")? };
        let parameters = raw.iter().map(|raw| Ok(handles::get_object(*raw)?)).collect::<Result<Vec<_>>>()?;
        load(&server, model_name, &parameters)?;
    }

    /// Unloads a model.
    fn TRITONSERVER_ServerUnloadModel(server: LiveObject<ServerToken>, model_name: Text) {
        unload(&server, model_name, false)?;
    }

    /// The same, with the models of its steps.
    fn TRITONSERVER_ServerUnloadModelAndDependents(server: LiveObject<ServerToken>, model_name: Text) {
        unload(&server, model_name, true)?;
    }
}
