//! Unit tests of `model_file.rs`.

use super::*;

fn parameters_with_type(name: &str) -> Parameters {
    let model_type = MODEL_TYPES.into_iter().find(|own| own.name == name);
    Parameters { model_type, ..Parameters::default() }
}

#[test]
fn the_file_follows_from_type_and_platform() {
    for (configured, platform, model_type, files, expected) in [
        // The configuration of a repository of FIL: the host has completed the platform's file.
        ("model.txt", "", "xgboost_json", &["xgboost.json"][..], "xgboost.json"),
        ("model.json", "xgboost", "xgboost_ubj", &["model.json", "xgboost.ubj"], "xgboost.ubj"),
        ("model.json", "xgboost", "xgboost", &["xgboost.model"], "xgboost.model"),
        ("model.json", "xgboost", "xgboost_json", &["model.json"], "model.json"),
        ("", "", "lightgbm", &["model.txt"], "model.txt"),
        // Without a type.
        ("model.json", "xgboost", "", &["model.ubj"], "model.ubj"),
        ("model.txt", "lightgbm", "", &["model.txt"], "model.txt"),
        ("", "", "", &["xgboost.ubj"], "xgboost.ubj"),
        // The user's name, also if there is no such file.
        ("trees.txt", "lightgbm", "", &["model.txt"], "trees.txt"),
        ("x.json", "", "xgboost_json", &[], "x.json"),
        // One of another type.
        ("model.txt", "lightgbm", "xgboost", &["model.txt"], "model.txt"),
        // None.
        ("model.txt", "", "xgboost_json", &[], "xgboost.json"),
    ] {
        let exists = |name: &str| files.contains(&name);
        let found = choose_name(configured, platform, &parameters_with_type(model_type), exists);
        assert_eq!(found, expected, "{configured} {platform} {model_type} {files:?}");
    }
}

#[test]
fn a_model_of_the_other_framework_is_refused() {
    let none = Parameters::default();
    for (format, platform, parameters, expected) in [
        (Format::LightGbm, "lightgbm", &none, ""),
        (Format::LightGbm, "", &none, ""),
        (Format::XgBoostUbj, "", &parameters_with_type("xgboost"), ""),
        (Format::XgBoostUbj, "lightgbm", &parameters_with_type("xgboost_json"), ""),
        (
            Format::LightGbm,
            "xgboost",
            &none,
            "the file is a LightGBM model, and the platform is 'xgboost': it needs platform 'lightgbm'",
        ),
        (
            Format::XgBoostJson,
            "",
            &parameters_with_type("lightgbm"),
            "the file is an XGBoost model in JSON, and the parameter 'model_type' is 'lightgbm'",
        ),
    ] {
        let refused = expect_type(format, platform, parameters).err().unwrap_or_default();
        assert_eq!(refused, expected);
    }
}
