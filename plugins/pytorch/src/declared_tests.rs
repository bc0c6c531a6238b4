//! Names of a configuration, and batches.

use super::*;
use trtserver_plugin_api::abi::types::dtype;

fn declared(names: &[&str]) -> Vec<DeclaredTensor> {
    let tensor = |(position, name): (usize, &&str)| DeclaredTensor {
        name: (*name).to_owned(),
        element: Element::Unknown,
        dims: None,
        position,
        numbers: vec![(dtype::FP32, 6)],
    };
    names.iter().enumerate().map(tensor).collect()
}

fn configured(name: &str) -> ConfiguredTensor {
    ConfiguredTensor {
        name: name.to_owned(),
        dtype: dtype::FP32,
        dims: vec![3],
        model_dims: vec![3],
        ..ConfiguredTensor::default()
    }
}

fn config(inputs: &[&str]) -> Config {
    Config {
        model: "M".to_owned(),
        inputs: inputs.iter().map(|name| configured(name)).collect(),
        outputs: vec![configured("RESULT")],
        ..Config::default()
    }
}

#[test]
fn numbered_names_are_positions() {
    let signature = || Signature {
        inputs: declared(&["ARGS[0]", "KWARGS[mask]"]),
        outputs: declared(&["RESULT"]),
    };
    for (names, positions) in [
        (["ARGS[0]", "KWARGS[mask]"], Some([0, 1])),
        (["INPUT__0", "INPUT__1"], Some([0, 1])),
        (["ids__1", "mask__0"], Some([1, 0])),
        (["KWARGS[mask]", "x__0"], Some([1, 0])),
        (["INPUT__0", "INPUT__2"], None),
        (["x", "mask"], None),
    ] {
        let (mut own, config) = (signature(), config(&names));
        own.adopt_numbered_names(&config);
        let found = own
            .plan(&config)
            .map(|plan| plan.inputs.iter().map(|slot| slot.handle.position).collect::<Vec<_>>());
        match positions {
            Some(positions) => assert_eq!(found, Ok(positions.to_vec()), "{names:?}"),
            None => {
                let text = found.expect_err("a fault").text;
                assert!(text.contains("unexpected inference input"), "{names:?}: {text}");
            }
        }
    }
}
