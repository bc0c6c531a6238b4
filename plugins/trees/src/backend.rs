//! The backend `fil`: cheap to open, the libraries are loaded with the first model of theirs.

use crate::complete::{self, DEFAULT_BATCH};
use crate::libraries::Libraries;
use crate::model::{FilModel, LoadedFile, read_parameters};
use crate::parameters::{LIGHTGBM, LIGHTGBM_FILE, XGBOOST, XGBOOST_FILE};
use crate::probe;
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_framework::complete::{SETTING, default_batch, is_needed};
use trtserver_framework::config::Config;
use trtserver_framework::log;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Completion, ConfigPatch, Error, ModelContext, ModelProbe,
    Platform,
};

pub struct Fil {
    pub dir: PathBuf,
    pub libraries: Libraries,
    default_batch: usize,
}

impl Backend for Fil {
    type Model = FilModel;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[
            Platform { name: LIGHTGBM, default_file: LIGHTGBM_FILE },
            Platform { name: XGBOOST, default_file: XGBOOST_FILE },
        ],
        flags: backend_flags::PARALLEL_OPEN
            | backend_flags::LISTS_FIELDS
            | backend_flags::V1_BATCH_SIZE,
        ..BackendInfo::new(crate::BACKEND, env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        log::send_to(context.log());
        Ok(Self {
            dir: PathBuf::from(context.dir()),
            libraries: Libraries::default(),
            default_batch: default_batch(context.setting(SETTING), DEFAULT_BATCH)?,
        })
    }

    fn runtime(&self) -> String {
        match self.libraries.labels() {
            // Not loaded until a model needs one, so that an idle server stays small.
            labels if labels.is_empty() => "LightGBM, XGBoost".to_owned(),
            labels => labels.join(", "),
        }
    }

    fn model_probe(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
        probe::probe_files(probe)
    }

    fn autocomplete(&self, context: &ModelContext) -> Result<Completion, Error> {
        let config = Config::from_context(context);
        if !is_needed(&config) {
            return Ok(Completion::default());
        }
        let parameters = read_parameters(context)?;
        let file = LoadedFile::open(self, context, &config, &parameters)?;
        let patch = complete::config_patch(&config, &file.widths, &parameters, self.default_batch);
        Ok(Completion::from(patch.map(ConfigPatch::Text)).with_state(Arc::new(file)))
    }
}
