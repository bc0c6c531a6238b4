//! Warnings about settings that only the adapter of Triton's backends uses, in models of other
//! backends.

use std::path::Path;
use trtserver_model_config::ConfigWarning;
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_proto::v2::ModelConfig;

/// The parameter with the path of a library that selects the requests of a batch.
const PARAMETER: &str = "TRITON_BATCH_STRATEGY_PATH";
/// Its name in the directory of a model or version.
const FILE: &str = "batchstrategy.so";

/// Warnings of a file name of the backend's library, and of libraries that select the requests of a
/// batch, which Triton would load for this model. Only the adapter of its backends does that here.
pub(super) fn without_effect(
    config: &ModelConfig,
    dir: &Path,
    found: &VersionDirs,
) -> Vec<ConfigWarning> {
    let versions = found.versions.values().map(|version| dir.join(version));
    let files = [dir.to_owned()].into_iter().chain(versions).map(|dir| dir.join(FILE));
    let files = files.filter(|file| file.exists());
    let files = files.map(|file| (String::new(), file.display().to_string()));
    let parameter = config.parameters.contains_key(PARAMETER);
    let parameter = parameter.then(|| ("parameters".to_owned(), "parameters".to_owned()));
    let unused = files.chain(parameter).map(|(field, subject)| ConfigWarning {
        field,
        message: format!(
            "'{subject}' has no effect: custom batching strategies are run for backends of Triton only; the server's dynamic batcher \
             selects the requests of a batch"
        ),
    });
    let runtime = (!config.runtime.is_empty()).then(|| ConfigWarning {
        field: "runtime".to_owned(),
        message: format!(
            "'runtime' has no effect: a plugin of the server is found by the name of the backend, not by the file name '{}'",
            config.runtime
        ),
    });
    runtime.into_iter().chain(unused).collect()
}
