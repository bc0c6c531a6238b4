//! A package, opened: its compiled model, and what is known of its tensors.

use crate::backend::PyTorch;
use crate::call_spec;
use crate::container::CompiledModel;
use crate::declared::Signature;
use crate::links::SizeLinks;
use crate::other_files::CONVERSION;
use crate::package::Package;
use crate::source::{self, CodeInput};
use std::fmt::Display;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_plugin_api::author::ModelContext;

/// Platforms, and the default files of their models.
pub const PACKAGES: &str = "torch_aoti";
pub const PACKAGE_FILE: &str = "model.pt2";
pub const TORCHSCRIPT: &str = "pytorch_libtorch";
pub const TORCHSCRIPT_FILE: &str = "model.pt";

pub struct LoadedPackage {
    pub compiled: CompiledModel,
    /// `None`: the package does not say.
    pub code: Option<Vec<CodeInput>>,
    pub links: SizeLinks,
    /// Names as Triton has them.
    pub signature: Signature,
}

impl LoadedPackage {
    /// # Errors
    /// The file or the library cannot be used: names the model and the file.
    pub fn open(
        backend: &PyTorch,
        context: &ModelContext,
        config: &Config,
    ) -> Result<Self, PluginFault> {
        refuse_torchscript(config)?;
        let name = if context.file().is_empty() { PACKAGE_FILE } else { context.file() };
        let path = model_files::in_version_dir(context, name)?;
        let refuse = |why: &dyn Display| {
            PluginFault::invalid(format!(
                "unable to load model '{}' from {}: {why}",
                context.name(),
                path.display()
            ))
        };
        let mut package = Package::open(&path).map_err(|why| refuse(&why))?;
        // After the file is known to be a package: its own faults come before those of the install.
        let torch = backend.torch(context)?;
        let label = torch.label.clone();
        let compiled = CompiledModel::open(torch, &mut package, context.n_instances())
            .map_err(|why| refuse(&format_args!("{why} (library: {label})")))?;
        let code =
            package.code.as_deref().and_then(|code| source::read_inputs(code, compiled.n_inputs));
        let names = tensor_names(&compiled);
        for (name, input) in names[0].iter().zip(code.iter().flatten()) {
            input
                .expect_contiguous()
                .map_err(|why| refuse(&format_args!("input '{name}': {why}")))?;
        }
        let signature = Signature::new(names, code.as_deref(), &compiled.torch.dtypes);
        let links = code.as_deref().map(SizeLinks::new).unwrap_or_default();
        Ok(Self { compiled, code, links, signature })
    }
}

/// # Errors
/// The configuration asks for TorchScript.
fn refuse_torchscript(config: &Config) -> Result<(), PluginFault> {
    if config.facts.platform != TORCHSCRIPT {
        return Ok(());
    }
    Err(PluginFault::unsupported(format!(
        "unable to load model '{}': platform '{TORCHSCRIPT}' is TorchScript, which only torch's C++ interface runs; \
         this backend runs packages of AOTInductor (platform '{PACKAGES}', file '{PACKAGE_FILE}'): {CONVERSION}; \
         tensors may keep the names INPUT__0 and OUTPUT__0",
        config.model
    )))
}

/// Names of inputs and outputs as Triton has them, or numbered where the call has arguments or
/// results that are not tensors.
fn tensor_names(compiled: &CompiledModel) -> [Vec<String>; 2] {
    let numbered = |prefix: &str, count: usize| {
        (0..count).map(|at| format!("{prefix}__{at}")).collect::<Vec<_>>()
    };
    let [inputs, outputs] = &compiled.call_spec;
    [
        call_spec::input_names(inputs, compiled.n_inputs)
            .unwrap_or_else(|| numbered("INPUT", compiled.n_inputs)),
        call_spec::output_names(outputs, compiled.n_outputs)
            .unwrap_or_else(|| numbered("OUTPUT", compiled.n_outputs)),
    ]
}
