//! A model version: its file opened by its framework, and the plan that configuration and file
//! agree on.

use crate::backend::Fil;
use crate::booster::{Booster, Task};
use crate::contents::Format;
use crate::instance::FilInstance;
use crate::lightgbm::LgbmModel;
use crate::model_file::ModelFile;
use crate::parameters::Parameters;
use crate::plan::{ModelPlan, ModelWidths, plan_model};
use crate::xgboost::XgbModel;
use std::sync::Arc;
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::{Error, Model, ModelContext};

/// A file that its framework has opened.
pub struct LoadedFile {
    pub booster: Booster,
    pub widths: ModelWidths,
}

impl LoadedFile {
    /// # Errors
    /// The file or the library cannot be used: names the model and the file.
    pub fn open(
        backend: &Fil,
        context: &ModelContext,
        config: &Config,
        parameters: &Parameters,
    ) -> Result<Self, PluginFault> {
        let file = ModelFile::read(context, &config.facts.platform, parameters)?;
        let setting = |name: &str| context.setting(name);
        let refuse = |fault: PluginFault| {
            let (model, path) = (context.name(), file.path.display());
            fault.within(format_args!("unable to load model '{model}' from {path}"))
        };
        let (booster, scores_are_classes) = match file.format {
            Format::LightGbm => {
                let library = backend.libraries.lightgbm(setting, &backend.dir)?;
                let model = LgbmModel::open(library, file.bytes).map_err(refuse)?;
                (Booster::LightGbm(model), false)
            }
            format => {
                let library = backend.libraries.xgboost(setting, &backend.dir)?;
                let opened = XgbModel::open(library, &file.bytes, parameters.probabilities);
                let model = opened.map_err(|fault| match format {
                    Format::XgBoostBinary => PluginFault::unsupported(format!(
                        "{}; XGBoost 3.1 and newer read JSON and UBJSON only: an older one converts the file \
                         (load_model, then save_model with a name that ends with .ubj)",
                        fault.text
                    )),
                    _ => fault,
                });
                let model = model.map_err(refuse)?;
                let classes = model.scores_are_classes();
                (Booster::XgBoost(model), classes)
            }
        };
        let widths = ModelWidths {
            features: booster.features(),
            scores: booster.width(Task::Scores),
            leaves: booster.width(Task::Leaves),
            contributions: booster.width(Task::Contributions),
            scores_are_classes,
        };
        Ok(Self { booster, widths })
    }
}

/// What the instances of a version share.
pub struct FilModel {
    pub name: String,
    pub file: Arc<LoadedFile>,
    pub plan: ModelPlan,
}

impl Model for FilModel {
    type Backend = Fil;
    type Instance = FilInstance;

    fn open(backend: &Arc<Fil>, context: &ModelContext) -> Result<Self, Error> {
        let config = Config::from_context(context);
        config.refuse_ragged(crate::BACKEND)?;
        let parameters = read_parameters(context)?;
        for name in &parameters.unused {
            context.log().info(format_args!(
                "model '{}': parameter '{name}' has no effect: it tunes another implementation of FIL",
                config.model
            ));
        }
        let file = match context.state::<Arc<LoadedFile>>() {
            // It was read for the completion.
            Some(file) => Arc::clone(file),
            None => Arc::new(LoadedFile::open(backend, context, &config, &parameters)?),
        };
        let plan = plan_model(&config, &file.widths, &parameters)?;
        Ok(Self { name: config.model, file, plan })
    }
}

/// # Errors
/// Names the model and the parameter.
pub fn read_parameters(context: &ModelContext) -> Result<Parameters, PluginFault> {
    Parameters::read(|name| context.value(name))
        .map_err(|fault| fault.within(format_args!("unable to load model '{}'", context.name())))
}
