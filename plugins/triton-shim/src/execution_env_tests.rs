//! Unit tests of `execution_env.rs`.

use super::*;
use trtserver_model_files::testing::HostileModel;

fn check_value(
    model: &HostileModel,
    value: &str,
    directories: &str,
) -> std::result::Result<(), String> {
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    let config = serde_json::json!({"parameters": {PARAMETER: {"string_value": value}}});
    check_execution_env(&config.to_string(), &places, directories)
        .map_err(|fault| fault.to_string())
}

#[test]
fn environments_are_the_models_or_the_operators() {
    let model = HostileModel::new(&["1"]);
    let outside = model.secret().parent().unwrap().display().to_string();
    let secret = model.secret().display().to_string();
    let own = model.model().join("1/own").display().to_string();
    for (value, directories, want) in [
        ("", "", true),
        ("$$TRITON_MODEL_DIRECTORY/1/own", "", true),
        ("$$TRITON_MODEL_DIRECTORY/new.tar.gz", "", true),
        ("$$TRITON_MODEL_DIRECTORY/../other/own", "", true),
        (&own, "", true),
        (&secret, &outside, true),
        (&secret, &format!("/opt; {outside}"), true),
        (&secret, "", false),
        (&secret, "/opt", false),
        ("$$TRITON_MODEL_DIRECTORY/1/out", "", false),
        ("$$TRITON_MODEL_DIRECTORY/../../outside/secret", "", false),
        ("env.tar.gz", "", false),
        ("../env.tar.gz", "", false),
        ("/opt/../etc/passwd", "/opt", false),
        ("own\0", "", false),
    ] {
        let found = check_value(&model, value, directories);
        assert_eq!(found.is_ok(), want, "{value:?} {directories:?}: {found:?}");
        let text = found.err().unwrap_or_default();
        assert!(want || text.contains("EXECUTION_ENV_PATH") && text.contains(value), "{text}");
    }
}

#[test]
fn no_value_leads_outside() {
    let model = HostileModel::new(&["1"]);
    proptest::proptest!(|(name in model.names(), relative in proptest::bool::ANY)| {
        let start = if relative { "" } else { "$$TRITON_MODEL_DIRECTORY/1/" };
        if check_value(&model, &format!("{start}{name}"), "").is_ok() {
            let start = start.replace(MODEL_DIRECTORY, &model.model().display().to_string());
            let read = std::fs::read(format!("{start}{name}")).unwrap_or_default();
            proptest::prop_assert!(!HostileModel::is_secret(&read), "{:?}", name);
        }
    });
}
