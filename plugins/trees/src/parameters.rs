//! Parameters of a model: those of Triton's FIL backend.

use crate::contents::Format;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::Value;

/// Files of this type have these names unless the configuration names one, FIL's first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelType {
    /// Value of the parameter `model_type`.
    pub name: &'static str,
    /// One of the backend's platforms.
    pub platform: &'static str,
    pub files: &'static [&'static str],
}

pub const MODEL_TYPES: [ModelType; 4] = [
    ModelType { name: "lightgbm", platform: LIGHTGBM, files: &["model.txt"] },
    ModelType { name: "xgboost_json", platform: XGBOOST, files: &["xgboost.json", "model.json"] },
    ModelType { name: "xgboost_ubj", platform: XGBOOST, files: &["xgboost.ubj", "model.ubj"] },
    ModelType { name: "xgboost", platform: XGBOOST, files: &["xgboost.model", "model.model"] },
];

/// Platforms, and the default files of their models.
pub const LIGHTGBM: &str = "lightgbm";
pub const XGBOOST: &str = "xgboost";
pub const LIGHTGBM_FILE: &str = "model.txt";
pub const XGBOOST_FILE: &str = "model.json";

/// Parameters with which FIL is tuned, and which change no result.
const TUNING: [&str; 7] = [
    "algo",
    "blocks_per_sm",
    "storage_type",
    "threads_per_tree",
    "transfer_threshold",
    "use_experimental_optimizations",
    "xgboost_allow_unknown_field",
];

/// What a configuration asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    pub model_type: Option<ModelType>,
    /// `output_class`: the class of a row instead of the model's score.
    pub classes: bool,
    /// `predict_proba`: the probability of each class.
    pub probabilities: bool,
    /// The score from which on a row is of class 1, if there are two classes.
    pub threshold: Option<f64>,
    /// Parameters that have no effect here.
    pub unused: Vec<&'static str>,
}

impl Parameters {
    /// `get` looks up a parameter of the model.
    ///
    /// # Errors
    /// Names the parameter, its value and what was expected.
    pub fn read<'a>(get: impl Fn(&str) -> Option<Value<'a>>) -> Result<Self, PluginFault> {
        let flag = |name: &str| match get(name) {
            None => Ok(false),
            Some(value) => value.to_bool().ok_or_else(|| wrong(name, value, "true or false")),
        };
        let threshold = match get("threshold") {
            None => None,
            Some(value) => {
                let number = value.to_f64().filter(|number| number.is_finite());
                Some(number.ok_or_else(|| wrong("threshold", value, "a number"))?)
            }
        };
        Ok(Self {
            model_type: get("model_type").map(read_model_type).transpose()?,
            classes: flag("output_class")?,
            probabilities: flag("predict_proba")?,
            threshold,
            unused: TUNING.into_iter().filter(|name| get(name).is_some()).collect(),
        })
    }
}

fn read_model_type(value: Value<'_>) -> Result<ModelType, PluginFault> {
    let name = value.text().unwrap_or_default();
    if let Some(known) = MODEL_TYPES.into_iter().find(|known| known.name == name) {
        return Ok(known);
    }
    let known = MODEL_TYPES.map(|known| known.name).join(", ");
    Err(match name {
        "treelite_checkpoint" => PluginFault::unsupported(format!(
            "parameter 'model_type' is 'treelite_checkpoint', which only Treelite reads; save the model in the form \
             of LightGBM or XGBoost ({known}), or serve it as ONNX (skl2onnx converts forests of scikit-learn)"
        )),
        _ => wrong("model_type", value, &format!("one of {known}")),
    })
}

fn wrong(name: &str, value: Value<'_>, expected: &str) -> PluginFault {
    PluginFault::invalid(format!("parameter '{name}' is {value}, expected {expected}"))
}

impl ModelType {
    /// Whether a file of this form is of this type. XGBoost tells its own forms apart, and releases
    /// since 2.1 write UBJSON under any name.
    pub fn accepts(self, format: Format) -> bool {
        self.platform == format.platform()
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
