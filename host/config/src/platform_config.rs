//! `--platform-config-file`: settings by platform, as releases up to v1.0 read them, turned into
//! settings of backends. The file and its platforms are those of docs/protocol/v1.md §1.2.

use super::backend_config::BackendConfig;
use std::path::Path;
use trtserver_proto::text;
use trtserver_proto::v1::{ConfigProto, PlatformConfigMap, SourceAdapterConfig};

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// How the text form begins the name of the type that an `Any` holds.
const TYPE_URL: &str = "[type.googleapis.com/";

/// Reads the file. `strict`: configurations are not completed.
///
/// # Errors
/// The file cannot be read, or asks for something that this server does not have.
pub fn read_platform_config(path: &Path, strict: bool) -> Result<BackendConfig, String> {
    let file = path.display();
    let unreadable = |why: &dyn std::fmt::Display| format!("--platform-config-file={file}: {why}");
    let long = std::fs::metadata(path).is_ok_and(|data| !data.is_file() || data.len() > MAX_BYTES);
    if long {
        return Err(unreadable(&format!("not a file of at most {MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(&e))?;
    parse_platform_config(&text, strict)
        .map_err(|e| format!("Invalid protobuf file: '{file}': {e}"))
}

fn parse_platform_config(text: &str, strict: bool) -> Result<BackendConfig, String> {
    let map: PlatformConfigMap =
        text::parse(&without_type_urls(text)).map_err(|e| e.to_string())?;
    let mut settings = BackendConfig::new();
    for (platform, config) in map.platform_configs {
        let adapter = config.source_adapter_config.unwrap_or_default();
        let (config, autofill) = parse_platform_entry(&platform, adapter)?;
        if autofill && strict {
            return Err(format!(
                "platform '{platform}' asks for autofill, which needs --strict-model-config=false"
            ));
        }
        let Some(config) = config else { continue };
        let settings = settings.entry("tensorflow".to_owned()).or_default();
        for (key, value) in session_settings(&config) {
            let before = settings.insert(key.to_owned(), value.clone());
            if let Some(before) = before.filter(|before| *before != value) {
                return Err(format!(
                    "{key} is {before} for one platform of TensorFlow and {value} for the other, but they share a backend"
                ));
            }
        }
    }
    Ok(settings)
}

/// The session settings of a platform, and whether its configurations are to be completed.
fn parse_platform_entry(
    platform: &str,
    mut adapter: SourceAdapterConfig,
) -> Result<(Option<ConfigProto>, bool), String> {
    let (tensorflow, plain) = match platform {
        "tensorflow_graphdef" => (adapter.graph_def_bundle_source_adapter_config.take(), None),
        "tensorflow_savedmodel" => (adapter.saved_model_bundle_source_adapter_config.take(), None),
        "caffe2_netdef" => (None, adapter.net_def_bundle_source_adapter_config.take()),
        "tensorrt_plan" => (None, adapter.plan_bundle_source_adapter_config.take()),
        "custom" => (None, adapter.custom_bundle_source_adapter_config.take()),
        _ => return Err(format!("unknown platform '{platform}'")),
    };
    if adapter != SourceAdapterConfig::default() {
        return Err(format!("platform '{platform}' has the configuration of another platform"));
    }
    let autofill = plain.is_some_and(|config| config.autofill)
        || tensorflow.as_ref().is_some_and(|config| config.autofill);
    Ok((tensorflow.and_then(|config| config.session_config), autofill))
}

/// The settings of the TensorFlow backend that a session configuration names.
fn session_settings(config: &ConfigProto) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if let Some(soft) = config.allow_soft_placement {
        settings.push(("allow-soft-placement", soft.to_string()));
    }
    let gpu = config.gpu_options.unwrap_or_default();
    let fraction = match (gpu.per_process_gpu_memory_fraction, gpu.allow_growth) {
        (Some(fraction), _) if fraction != 0.0 => Some(fraction),
        (_, Some(true)) => Some(0.0),
        (fraction, _) => fraction,
    };
    settings.extend(fraction.map(|fraction| ("gpu-memory-fraction", fraction.to_string())));
    settings
}

/// Replaces `[type.googleapis.com/PACKAGE.NAME]` by `NAME` and blanks, so that places in errors
/// stay true.
fn without_type_urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(TYPE_URL) {
        out.push_str(before);
        let Some((name, after)) = after.split_once(']') else {
            rest = &rest[before.len()..];
            break;
        };
        let short = name.rsplit_once('.').map_or(name, |(_, short)| short);
        out.push_str(short);
        out.extend(std::iter::repeat_n(' ', TYPE_URL.len() + name.len() + 1 - short.len()));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
#[path = "platform_config_tests.rs"]
mod tests;
