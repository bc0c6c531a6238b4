//! A model's file as the library has read it, and the tensors that it declares.

use crate::library::{OpenVino, c_path};
use crate::symbols::{OvDimension, OvNetwork, OvPartialShape, OvPort, Status};
use crate::types;
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use trtserver_framework::check::{self, Dims, Element, ModelTensors};
use trtserver_framework::config::{Config, ConfiguredTensor};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::slot;

/// How a run names a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorPort {
    pub index: usize,
    /// OpenVINO's number of the type.
    pub element: i32,
}

pub type TensorSlot = slot::TensorSlot<TensorPort>;
pub type TensorPlan = slot::TensorPlan<TensorPort>;

/// A tensor that the file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTensor {
    pub name: String,
    pub port: TensorPort,
    /// -1 = dynamic; `None` = any number of dimensions.
    pub dims: Option<Vec<i64>>,
}

/// The tensors of a model, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    pub inputs: Vec<DeclaredTensor>,
    pub outputs: Vec<DeclaredTensor>,
}

impl Signature {
    pub fn tensors(&self) -> ModelTensors<'_, DeclaredTensor> {
        ModelTensors { inputs: &self.inputs, defaulted: &[], outputs: &self.outputs }
    }
}

impl check::TensorDeclaration for DeclaredTensor {
    type Handle = TensorPort;

    fn name(&self) -> &str {
        &self.name
    }

    fn element(&self) -> Element {
        types::to_element(self.port.element)
    }

    fn dims(&self) -> Dims<'_> {
        match &self.dims {
            Some(dims) => Dims::Known(dims),
            None => Dims::Unknown,
        }
    }

    fn handle(&self, dtype: u32) -> Option<TensorPort> {
        (types::from_dtype(dtype) == Some(self.port.element)).then_some(self.port)
    }
}

/// A file that was read, not compiled yet.
pub struct Network {
    pub library: Arc<OpenVino>,
    pub raw: *mut OvNetwork,
}

// SAFETY: a network is changed by `reshape` only, which takes it exclusively; the library reads it
// on any thread.
unsafe impl Send for Network {}
// SAFETY: as above.
unsafe impl Sync for Network {}

impl Network {
    /// # Errors
    /// The library's.
    pub fn read(library: &Arc<OpenVino>, path: &Path) -> Result<Self, PluginFault> {
        let path = c_path(path)?;
        let mut raw = ptr::null_mut();
        let read = library.table.network_read;
        // SAFETY: the core is alive; without a path for weights the library looks beside the file.
        let status = unsafe { read(library.core, path.as_ptr(), ptr::null(), &raw mut raw) };
        library.outcome(status)?;
        Ok(Self { library: Arc::clone(library), raw })
    }

    /// The tensors, under the names of the configuration where the file has several for one.
    ///
    /// # Errors
    /// The library's.
    pub fn signature(&self, config: &Config) -> Result<Signature, PluginFault> {
        let table = &self.library.table;
        let mut signature = Signature {
            inputs: self.list(Side::INPUT, table.inputs_size, table.input_at)?,
            outputs: self.list(Side::OUTPUT, table.outputs_size, table.output_at)?,
        };
        let host = &config.facts;
        self.rename(&mut signature.inputs, &config.inputs, &host.host_inputs, table.input_named);
        self.rename(
            &mut signature.outputs,
            &config.outputs,
            &host.host_outputs,
            table.output_named,
        );
        Ok(signature)
    }

    fn list(
        &self,
        side: &Side,
        size: unsafe extern "C" fn(*const OvNetwork, *mut usize) -> Status,
        at: unsafe extern "C" fn(*const OvNetwork, usize, *mut *mut OvPort) -> Status,
    ) -> Result<Vec<DeclaredTensor>, PluginFault> {
        let mut count = 0;
        // SAFETY: the network is alive; the out pointer is ours.
        self.library.outcome(unsafe { size(self.raw, &raw mut count) })?;
        let read = |index| {
            let mut port = ptr::null_mut();
            // SAFETY: as above; the index is below the number.
            self.library.outcome(unsafe { at(self.raw, index, &raw mut port) })?;
            Port { library: &self.library, raw: port }.declared(side, index)
        };
        (0..count).map(read).collect()
    }

    /// Gives tensors the names that the configuration has for them: another name of the same
    /// tensor, or that of a TensorFlow node without the `:0` of its first output.
    fn rename(
        &self,
        declared: &mut [DeclaredTensor],
        configured: &[ConfiguredTensor],
        added: &[String],
        find: unsafe extern "C" fn(*const OvNetwork, *const c_char, *mut *mut OvPort) -> Status,
    ) {
        let names = configured.iter().map(|tensor| &tensor.name).chain(added);
        for name in names {
            if declared.iter().any(|own| own.name == *name) {
                continue;
            }
            let node = format!("{name}:0");
            let main = declared.iter().position(|own| own.name == node);
            let main = main.or_else(|| {
                let main = self.main_name(name, find)?;
                declared.iter().position(|own| own.name == main)
            });
            if let Some(at) = main {
                declared[at].name.clone_from(name);
            }
        }
    }

    /// The name under which [`Network::list`] has the tensor that is also called `name`.
    fn main_name(
        &self,
        name: &str,
        find: unsafe extern "C" fn(*const OvNetwork, *const c_char, *mut *mut OvPort) -> Status,
    ) -> Option<String> {
        let name = CString::new(name).ok()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the network is alive, the name a C string, the out pointer ours.
        if unsafe { find(self.raw, name.as_ptr(), &raw mut raw) } != 0 {
            return None;
        }
        Port { library: &self.library, raw }.name()
    }

    /// Gives inputs other shapes.
    ///
    /// # Errors
    /// The library's: an operation cannot have these shapes.
    pub fn reshape(&mut self, shapes: &[(usize, Vec<i64>)]) -> Result<(), PluginFault> {
        let positions: Vec<usize> = shapes.iter().map(|(at, _)| *at).collect();
        let limits = |&dim: &i64| match dim {
            -1 => OvDimension { min: 0, max: -1 },
            fixed => OvDimension { min: fixed, max: fixed },
        };
        let mut dims: Vec<Vec<OvDimension>> =
            shapes.iter().map(|(_, shape)| shape.iter().map(limits).collect()).collect();
        let partial = |dims: &mut Vec<OvDimension>| {
            let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
            OvPartialShape { rank: OvDimension { min: rank, max: rank }, dims: dims.as_mut_ptr() }
        };
        let partial: Vec<OvPartialShape> = dims.iter_mut().map(partial).collect();
        let call = self.library.table.reshape;
        // SAFETY: as many positions as shapes, whose dimensions live until the call returns.
        let status = unsafe { call(self.raw, positions.as_ptr(), partial.as_ptr(), partial.len()) };
        self.library.outcome(status)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once.
        unsafe { (self.library.table.network_free)(self.raw) }
    }
}

/// What distinguishes inputs and outputs.
struct Side {
    /// For tensors to which the file gives no name.
    prefix: &'static str,
}

impl Side {
    const INPUT: &'static Side = &Side { prefix: "input" };
    const OUTPUT: &'static Side = &Side { prefix: "output" };
}

/// A tensor of a network, for questions.
struct Port<'a> {
    library: &'a OpenVino,
    raw: *mut OvPort,
}

impl Port<'_> {
    fn declared(&self, side: &Side, index: usize) -> Result<DeclaredTensor, PluginFault> {
        let mut element = 0;
        let mut shape =
            OvPartialShape { rank: OvDimension { min: 0, max: 0 }, dims: ptr::null_mut() };
        let table = &self.library.table;
        // SAFETY: the port is alive, the out pointers are ours; the shape is freed once.
        let dims = unsafe {
            self.library.outcome((table.port_element)(self.raw, &raw mut element))?;
            self.library.outcome((table.port_shape)(self.raw, &raw mut shape))?;
            let dims = read_dims(&shape);
            (table.partial_shape_free)(&raw mut shape);
            dims
        };
        let name = self.name().unwrap_or_else(|| format!("{}_{index}", side.prefix));
        let rank = dims.as_ref().map_or(0, Vec::len);
        if rank > MAX_RANK {
            return Err(PluginFault::unsupported(format!(
                "tensor '{name}' has {rank} dimensions, more than the {MAX_RANK} supported"
            )));
        }
        Ok(DeclaredTensor { name, port: TensorPort { index, element }, dims })
    }

    /// The first name of the tensor, if it has any.
    fn name(&self) -> Option<String> {
        let mut name = ptr::null_mut();
        // SAFETY: the port is alive; the text is ours.
        unsafe {
            match (self.library.table.port_name)(self.raw, &raw mut name) {
                0 => Some(self.library.take_text(name)).filter(|name| !name.is_empty()),
                _ => None,
            }
        }
    }
}

impl Drop for Port<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, and freed once.
        unsafe { (self.library.table.port_free)(self.raw) }
    }
}

/// The dimensions of a shape; `None` if their number is dynamic.
///
/// # Safety
/// A shape that the library has filled in.
unsafe fn read_dims(shape: &OvPartialShape) -> Option<Vec<i64>> {
    if shape.rank.min != shape.rank.max {
        return None;
    }
    let rank = usize::try_from(shape.rank.max).ok()?;
    if rank == 0 || shape.dims.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: the caller's promise: a static rank comes with as many dimensions.
    let dims = unsafe { std::slice::from_raw_parts(shape.dims, rank) };
    Some(dims.iter().map(|dim| if dim.min == dim.max { dim.min } else { -1 }).collect())
}
