//! An instance: one context of a library, initialised, executed and finalised on the instance's thread.

use crate::callbacks::{
    get_next_input, get_next_input_v2, get_output, get_output_a, get_output_v2,
};
use crate::config;
use crate::desk::Desk;
use crate::generation::{Generation, choose};
use crate::legacy::{Context, Execute, Initialize, InitializeData};
use crate::library::{self, Entries};
use crate::model::{CustomModel, c_text};
use crate::payloads::Payloads;
use crate::session::{Cursor, Session, Slip, ZeroBlock};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use trtserver_plugin_api::author::{Batch, Error, Instance, InstanceContext, Request, Scope};

pub struct CustomInstance {
    /// First, and so finalised first: it may use what it was told.
    library: Handle,
    name: String,
    model: Arc<CustomModel>,
    log: Scope,
    generation: Generation,
    desk: &'static Desk,
    payloads: Payloads,
    /// Parts of a session, between executions.
    slips: Vec<Slip<'static>>,
    cursors: Vec<Cursor>,
    zeros: ZeroBlock,
    shape: Vec<i64>,
    _told: Told,
}

/// A library's context. Finalised exactly once, when this is dropped, also if initialise failed.
struct Handle {
    entries: Entries,
    context: Context,
    log: Scope,
}

/// What the library was told at initialise. It should not keep pointers into it, and may all the same.
struct Told {
    config: (Vec<u8>, usize),
    _name: CString,
    _parameters: Vec<*const c_char>,
    data: Box<InitializeData>,
}

impl Told {
    fn new(model: &CustomModel, generation: Generation, name: &str, device: c_int) -> Told {
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
        Told { config, _name: name, _parameters: parameters, data }
    }
}

impl Handle {
    /// `(E) TEXT`
    fn error(&self, code: c_int) -> String {
        // SAFETY: the context of this library; the text is copied before the library runs again.
        let text = unsafe { (self.entries.error_string)(self.context, code) };
        if text.is_null() {
            return format!("({code}) <no error string>");
        }
        // SAFETY: a text of C that the library lends.
        format!("({code}) {}", unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }

    fn initialize(&mut self, told: &Told) -> c_int {
        let out = &raw mut self.context;
        let (config, device) = (told.config.0.as_ptr().cast(), told.data.gpu_device_id);
        // SAFETY: the function of the generation that the library is taken for; what it is told lives as
        // long as the instance.
        unsafe {
            match self.entries.initialize {
                Initialize::A(f) => f(config, device, out),
                Initialize::B(f) => f(config, told.config.1, device, out),
                Initialize::C(f) => f(&raw const *told.data, out),
            }
        }
    }

    /// The library reads `payloads` and calls back through the contexts in them.
    fn execute(&self, payloads: &mut Payloads, n: u32) -> c_int {
        // SAFETY: as above; the payloads are valid until this returns.
        unsafe {
            match self.entries.execute {
                Execute::A(f) => {
                    f(self.context, n, payloads.array_a(), get_next_input, get_output_a)
                }
                Execute::B(f) => f(self.context, n, payloads.array(), get_next_input, get_output),
                Execute::V2(f) => {
                    f(self.context, n, payloads.array(), get_next_input_v2, get_output_v2)
                }
            }
        }
    }
}

impl Drop for Handle {
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
        let device = context.device_id();
        let path = model.file(device)?;
        let library = library::open(&path)?;
        let generation = choose(model.asked, model.usual, library.version)?;
        let entries = library.entries(generation)?;
        let log = context.log().clone();
        log.info(format_args!(
            "instance '{}': {} is taken for a library of generation {generation}",
            context.name(),
            path.display()
        ));
        let told = Told::new(model, generation, context.name(), device.unwrap_or(-1));
        // Before the library is touched, so that what it makes is finalised whatever fails.
        let desk = Desk::take()?;
        let mut library_context = Handle { entries, context: ptr::null_mut(), log: log.clone() };
        let code = library_context.initialize(&told);
        if code != 0 {
            desk.leave();
            // Libraries of v1.6 and later may be made with a kit whose text function needs a context.
            let nobody = library.version.is_some() && library_context.context.is_null();
            let why = if nobody {
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
            desk,
            payloads: Payloads::default(),
            slips: Vec::new(),
            cursors: Vec::new(),
            zeros: ZeroBlock::default(),
            shape: Vec::new(),
            _told: told,
        })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let (rows, most) = (batch.rows(), self.model.max_batch_size.max(1));
        if rows > most {
            return Err(Error::internal(format_args!(
                "dynamic batch size {rows} for '{}', max allowed is {most}",
                self.name
            )));
        }
        let model = self.model.clone();
        self.payloads.fill(&model, batch.requests(), self.desk.next_context());
        let mut session = Session {
            slips: recycle(std::mem::take(&mut self.slips)),
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
            session.slips.push(Slip::new(request, is_null(&model, request), cursors));
        }
        // SAFETY: the session is not touched here until the guard is dropped.
        let open = unsafe { self.desk.publish(NonNull::from(&mut session), batch.len()) };
        let code = self.library.execute(&mut self.payloads, batch.len() as u32);
        drop(open);
        let Session { mut slips, cursors, zeros, shape, .. } = session;
        (self.cursors, self.zeros, self.shape) = (cursors, zeros, shape);
        if code == 0 {
            for (at, slip) in slips.drain(..).enumerate() {
                self.answer(slip, self.payloads.error_code(at));
            }
        }
        self.slips = recycle(slips);
        if code != 0 {
            let why = self.library.error(code);
            return Err(Error::internal(format_args!("execute error for '{}': {why}", self.name)));
        }
        Ok(())
    }
}

impl CustomInstance {
    fn answer(&self, slip: Slip<'_>, error_code: c_int) {
        let Slip { request, null, response, fault, .. } = slip;
        let name = &self.name;
        if error_code != 0 {
            let why = self.library.error(error_code);
            // The library's text seldom says what was wrong with an output that it was refused.
            let also = fault.map(|text| format!(" ({text})")).unwrap_or_default();
            drop(response);
            return request
                .fail(Error::internal(format_args!("payload error for '{name}': {why}{also}")));
        }
        if let Some(text) = fault {
            drop(response);
            return request.fail(Error::internal(format_args!("instance '{name}': {text}")));
        }
        if null {
            return request.finish();
        }
        // What was asked for and not made, the host says.
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
        self.desk.leave();
    }
}

/// Stands for an idle slot: callers must give the number of their sequence, the host gives none.
fn is_null(model: &CustomModel, request: Request<'_>) -> bool {
    model.facts.sequences
        && request.correlation_id() == 0
        && request.correlation_id_string().is_empty()
        && !request.warmup()
}

/// The same vector, empty, for slips of another life.
fn recycle<'b>(mut slips: Vec<Slip<'_>>) -> Vec<Slip<'b>> {
    slips.clear();
    // Collected in place: the memory stays.
    slips.into_iter().map_while(|_| None).collect()
}
