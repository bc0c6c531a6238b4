//! An instance: one context of a library, initialised, executed and finalised on the instance's
//! thread.

use crate::callback_context::ContextSlot;
use crate::callbacks::{
    get_next_input, get_next_input_v2, get_next_input_without_hint, get_output, get_output_a,
    get_output_v2,
};
use crate::config;
use crate::custom_h::{Context, Execute, Initialize, InitializeData};
use crate::generation::{Generation, PARAMETER, choose_generation};
use crate::library::{self, CustomLibrary, LibraryEntries};
use crate::model::{CustomModel, c_text};
use crate::payloads::PayloadArray;
use crate::session::{Cursor, ExecuteSession, PayloadState, ZeroBlock};
use crate::trial::{self, TrialOutcome, TrialReport};
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use trtserver_plugin_api::author::{Batch, Error, Instance, InstanceContext, Request, Scope};

/// Code of a trial whose initialise stored no context.
const NO_CONTEXT: c_int = -1;

pub struct CustomInstance {
    /// First, so that it is finalised first: it may use its initialisation arguments.
    library: LibraryHandle,
    name: String,
    model: Arc<CustomModel>,
    log: Scope,
    generation: Generation,
    slot: &'static ContextSlot,
    payloads: PayloadArray,
    /// Parts of a session, between executions.
    states: Vec<PayloadState<'static>>,
    cursors: Vec<Cursor>,
    zeros: ZeroBlock,
    shape: Vec<i64>,
    _arguments: InitializeArguments,
}

/// A library's context. Finalised exactly once, when this is dropped, also if initialise failed.
struct LibraryHandle {
    entries: LibraryEntries,
    context: Context,
    log: Scope,
}

/// Arguments of initialise. Valid as long as the instance: some libraries keep pointers into them,
/// although they must not.
struct InitializeArguments {
    config: (Vec<u8>, usize),
    _name: CString,
    _parameters: Vec<*const c_char>,
    data: Box<InitializeData>,
}

impl InitializeArguments {
    fn new(model: &CustomModel, generation: Generation, name: &str, device: c_int) -> Self {
        let config = config::bytes_for(generation, &model.config);
        let name = c_text(name);
        let parameters = vec![model.server_version.as_ptr(), model.repository.as_ptr()];
        let data = Box::new(InitializeData {
            instance_name: name.as_ptr(),
            serialized_model_config: config.0.as_ptr().cast(),
            serialized_model_config_size: config.1,
            gpu_device_id: device,
            server_parameter_cnt: parameters.len(),
            server_parameters: parameters.as_ptr(),
        });
        Self { config, _name: name, _parameters: parameters, data }
    }
}

impl LibraryHandle {
    /// `(E) TEXT`
    fn error(&self, code: c_int) -> String {
        // SAFETY: the context of this library; the text is copied before the library runs again.
        let text = unsafe { (self.entries.error_string)(self.context, code) };
        if text.is_null() {
            return format!("({code}) <no error string>");
        }
        // SAFETY: a C string, valid until the next call of the library.
        format!("({code}) {}", unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }

    fn initialize(&mut self, arguments: &InitializeArguments) -> c_int {
        initialize_library(self.entries.initialize, arguments, &mut self.context)
    }

    /// The library reads `payloads` and calls back through the contexts in them.
    fn execute(&self, generation: Generation, payloads: &mut PayloadArray, n: u32) -> c_int {
        let next_input =
            if generation.has_hints() { get_next_input } else { get_next_input_without_hint };
        // SAFETY: the function has the type of the generation, and the context comes from
        // `initialize`. The payloads are valid until this returns.
        unsafe {
            match self.entries.execute {
                Execute::A(f) => f(self.context, n, payloads.array_a(), next_input, get_output_a),
                Execute::B(f) => f(self.context, n, payloads.array(), next_input, get_output),
                Execute::V2(f) => {
                    f(self.context, n, payloads.array(), get_next_input_v2, get_output_v2)
                }
            }
        }
    }
}

impl Drop for LibraryHandle {
    fn drop(&mut self) {
        // SAFETY: initialise has returned, nothing executes; the only call.
        let code = unsafe { (self.entries.finalize)(self.context) };
        if code != 0 {
            self.log.error(format_args!("error finalizing custom library: {}", self.error(code)));
        }
    }
}

impl Instance for CustomInstance {
    type Model = CustomModel;

    fn open(model: &Arc<CustomModel>, context: &InstanceContext) -> Result<Self, Error> {
        let path = model.file()?;
        let library = library::open_library(&path)?;
        let generation = match says_generation(model, library) {
            true => choose_generation(model.requested, model.default, library.version)?,
            false => find_generation(model, context, library, &path)?,
        };
        let entries = library.entries(generation)?;
        context.log().info(format_args!(
            "instance '{}': {} is treated as a library of generation {generation}",
            context.name(),
            path.display()
        ));
        Self::initialize(model, context, entries, generation, library.version.is_some())
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let (rows, max) = (batch.rows(), self.model.max_batch_size.max(1));
        if rows > max {
            return Err(Error::internal(format_args!(
                "dynamic batch size {rows} for '{}', max allowed is {max}",
                self.name
            )));
        }
        let model = self.model.clone();
        self.payloads.fill(&model, batch.requests(), self.slot.next_context());
        let mut session = ExecuteSession {
            states: recycle(std::mem::take(&mut self.states)),
            cursors: std::mem::take(&mut self.cursors),
            zeros: std::mem::take(&mut self.zeros),
            shape: std::mem::take(&mut self.shape),
            outputs: &model.outputs,
            strict: self.generation.strict(),
            instance: &self.name,
            log: &self.log,
        };
        session.cursors.clear();
        for request in batch.requests() {
            let cursors = session.cursors.len();
            session.cursors.resize(cursors + request.inputs().len(), Cursor::default());
            session.states.push(PayloadState::new(request, is_null(&model, request), cursors));
        }
        // SAFETY: the session is not accessed here until the guard is dropped.
        let open = unsafe { self.slot.publish(NonNull::from(&mut session), batch.len()) };
        let code = self.library.execute(self.generation, &mut self.payloads, batch.len() as u32);
        drop(open);
        let ExecuteSession { mut states, cursors, zeros, shape, .. } = session;
        (self.cursors, self.zeros, self.shape) = (cursors, zeros, shape);
        if code == 0 {
            for (at, state) in states.drain(..).enumerate() {
                self.respond(state, self.payloads.error_code(at));
            }
        }
        self.states = recycle(states);
        if code != 0 {
            let why = self.library.error(code);
            return Err(Error::internal(format_args!("execute error for '{}': {why}", self.name)));
        }
        Ok(())
    }
}

impl CustomInstance {
    /// An instance of a library with these functions, initialised. `exports_version`: the library
    /// has `CustomVersion`.
    pub fn initialize(
        model: &Arc<CustomModel>,
        context: &InstanceContext,
        entries: LibraryEntries,
        generation: Generation,
        exports_version: bool,
    ) -> Result<Self, Error> {
        let log = context.log().clone();
        let device = context.device_id().unwrap_or(-1);
        let arguments = InitializeArguments::new(model, generation, context.name(), device);
        // Before the library is called, so that its context is finalised on every path.
        let slot = ContextSlot::acquire()?;
        let mut library_context =
            LibraryHandle { entries, context: ptr::null_mut(), log: log.clone() };
        let code = library_context.initialize(&arguments);
        if code != 0 {
            slot.release();
            // The error text function of the v1.6 SDK needs a context.
            let no_context = exports_version && library_context.context.is_null();
            let why = if no_context {
                format!("failed to create instance, error code: {code}")
            } else {
                library_context.error(code)
            };
            return Err(Error::internal(format_args!(
                "initialize error for '{}': {why}",
                model.name
            )));
        }
        Ok(Self {
            name: context.name().to_owned(),
            model: model.clone(),
            log,
            generation,
            library: library_context,
            slot,
            payloads: PayloadArray::default(),
            states: Vec::new(),
            cursors: Vec::new(),
            zeros: ZeroBlock::default(),
            shape: Vec::new(),
            _arguments: arguments,
        })
    }

    fn respond(&self, state: PayloadState<'_>, error_code: c_int) {
        let PayloadState { request, null, response, fault, .. } = state;
        let name = &self.name;
        if error_code != 0 {
            let why = self.library.error(error_code);
            // The library's text rarely explains why a callback rejected an output.
            let detail = fault.map(|text| format!(" ({text})")).unwrap_or_default();
            drop(response);
            return request
                .fail(Error::internal(format_args!("payload error for '{name}': {why}{detail}")));
        }
        if let Some(text) = fault {
            drop(response);
            return request.fail(Error::internal(format_args!("instance '{name}': {text}")));
        }
        if null {
            return request.finish();
        }
        // The host reports requested outputs that are missing.
        let sent = response
            .map_or_else(|| request.new_response(), Ok)
            .and_then(|response| response.send());
        if let Err(error) = sent {
            request.fail(error);
        }
    }
}

impl Drop for CustomInstance {
    fn drop(&mut self) {
        self.slot.release();
    }
}

/// Whether the library, the model or the operator says which generation the library speaks.
fn says_generation(model: &CustomModel, library: &CustomLibrary) -> bool {
    library.version.is_some() || model.requested.or(model.default).is_some()
}

/// The generation of a library of which nothing says it.
fn find_generation(
    model: &CustomModel,
    context: &InstanceContext,
    library: &CustomLibrary,
    path: &Path,
) -> Result<Generation, Error> {
    if let Some(found) = library.tried.get() {
        return Ok(*found);
    }
    // The functions have the same names in both.
    library.entries(Generation::V0_12)?;
    let device = context.device_id().unwrap_or(-1);
    let report = TrialReport::new(|generation| {
        let Ok(entries) = library.entries(generation) else { return TrialOutcome::Unknown };
        let arguments = InitializeArguments::new(model, generation, context.name(), device);
        let none: Context = ptr::without_provenance_mut(usize::MAX);
        let mut library_context = none;
        trial::call_in_copy(|| {
            let code = initialize_library(entries.initialize, &arguments, &mut library_context);
            // One without a context may be of any generation.
            let foreign = generation == Generation::V1_0 && library_context == none;
            if foreign { NO_CONTEXT } else { code }
        })
    });
    let found = report.generation().ok_or_else(|| {
        Error::invalid(format_args!(
            "unable to load custom library {}: {report}; if it works, name its generation by the parameter '{PARAMETER}'",
            path.display()
        ))
    })?;
    if report.as_c.is_some() {
        let (instance, path) = (context.name(), path.display());
        context.log().info(format_args!("instance '{instance}': {path}: {report}"));
    }
    Ok(*library.tried.get_or_init(|| found))
}

/// Calls initialise as the generation declares it.
fn initialize_library(
    initialize: Initialize,
    arguments: &InitializeArguments,
    context: &mut Context,
) -> c_int {
    let out = ptr::from_mut(context);
    let (config, device) = (arguments.config.0.as_ptr().cast(), arguments.data.gpu_device_id);
    // SAFETY: the function has the type of the generation; its arguments are valid as long
    // as the instance, or the process that tries it.
    unsafe {
        match initialize {
            Initialize::A(f) => f(config, device, out),
            Initialize::B(f) => f(config, arguments.config.1, device, out),
            Initialize::C(f) => f(&raw const *arguments.data, out),
        }
    }
}

/// Whether the request stands for an idle sequence slot: the host sends it without a correlation
/// id.
fn is_null(model: &CustomModel, request: Request<'_>) -> bool {
    model.facts.sequences
        && request.correlation_id() == 0
        && request.correlation_id_string().is_empty()
        && !request.warmup()
}

/// Reuses the allocation of a vector for another lifetime.
fn recycle<'b>(mut states: Vec<PayloadState<'_>>) -> Vec<PayloadState<'b>> {
    states.clear();
    // The standard library collects in place, so the allocation is kept.
    states.into_iter().map_while(|_| None).collect()
}
