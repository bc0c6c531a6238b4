//! Unit tests of `check.rs`.

use super::*;
use trtserver_framework::config::ConfiguredTensor;

pub fn tensor(name: &str, data_type: i32, dims: Option<&[i64]>) -> GraphTensor {
    GraphTensor {
        name: name.into(),
        operation: format!("serve_{name}"),
        index: 2,
        data_type,
        dims: dims.map(<[i64]>::to_vec),
    }
}

fn decl(name: &str, dtype: u32, dims: &[i64]) -> ConfiguredTensor {
    let dims = dims.to_vec();
    ConfiguredTensor {
        name: name.into(),
        dtype,
        model_dims: dims.clone(),
        dims,
        ..ConfiguredTensor::default()
    }
}

fn signature() -> Signature {
    Signature {
        inputs: vec![tensor("a", 1, Some(&[-1, 16])), tensor("b", 7, None)],
        outputs: vec![tensor("y", 0, None), tensor("z", 20, Some(&[]))],
        method: String::new(),
    }
}

fn config() -> Config {
    Config {
        model: "M".into(),
        max_batch_size: 8,
        inputs: vec![decl("b", dtype::STRING, &[-1]), decl("a", dtype::FP32, &[16])],
        outputs: vec![decl("y", dtype::INT32, &[1])],
        ..Config::default()
    }
}

fn refusal(config: &Config) -> String {
    check_signature(config, &signature()).unwrap_err().text
}

#[test]
fn plan_names_operations_and_types_of_tensorflow() {
    let plan = check_signature(&config(), &signature()).unwrap();
    let [b, a] = &plan.inputs[..] else { panic!("{plan:?}") };
    assert_eq!(
        (a.handle.operation.as_str(), a.handle.index, a.handle.data_type),
        ("serve_a", 2, 1)
    );
    assert_eq!((b.handle.data_type, b.unranked, b.scalar), (7, true, false));
    // The file states no type of `y`; `z` has none that a request can have.
    assert_eq!((plan.outputs.len(), plan.outputs[0].handle.data_type), (1, 3));
}

#[test]
fn number_of_inputs_is_that_of_the_signature() {
    let mut c = config();
    c.facts.host_inputs.push("START".into());
    assert_eq!(
        refusal(&c),
        "unable to load model 'M', configuration expects 3 inputs, model provides 2; unexpected \
         inference input 'START', allowed inputs are: a, b"
    );
    let mut c = config();
    c.inputs.pop();
    assert_eq!(
        refusal(&c),
        "unable to load model 'M', configuration expects 1 inputs, model provides 2; not configured: a"
    );
}

#[test]
fn shapes_are_compared_with_both_in_the_error() {
    let mut c = config();
    c.inputs[1] = decl("a", dtype::FP32, &[17]);
    let text = refusal(&c);
    assert!(
        text.starts_with(
            "unable to load model 'M', input 'a' dims [-1,16] don't match configuration dims [-1,17]: \
             model 'M', tensor 'a': the model expects 2 dimensions (shape [-1,16]) but the model \
             configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0"
        ),
        "{text}"
    );
    c.max_batch_size = 0;
    let text = refusal(&c);
    assert!(text.contains("tensor 'a': the model expects 2 dimensions (shape [-1,16])"));
}

#[test]
fn configured_shapes_replace_those_that_contradict_them() {
    let both = |max_batch_size, known: &[i64], own: &[i64]| {
        let mut c = config();
        (c.max_batch_size, c.inputs) = (max_batch_size, vec![decl("a", dtype::FP32, own)]);
        let mut signature = signature();
        signature.inputs = vec![tensor("a", 1, Some(known))];
        let notes = prefer_configured_shapes(&c, &mut signature);
        (signature.inputs.remove(0).dims.unwrap(), notes.len())
    };
    for (max_batch_size, known, own, want, notes) in [
        (0, &[-1, 1][..], &[1][..], &[1][..], 1),
        (0, &[-1, 1], &[3, 1], &[-1, 1], 0),
        (0, &[], &[1], &[], 0),
        (0, &[], &[2], &[2], 1),
        (0, &[0, 2], &[-1, 2], &[0, 2], 0),
        (8, &[-1, 16], &[16], &[-1, 16], 0),
        (8, &[-1, 16], &[17], &[-1, 17], 1),
        (8, &[4, 16], &[16], &[-1, 16], 1),
        (8, &[], &[1], &[-1, 1], 1),
    ] {
        assert_eq!(both(max_batch_size, known, own), (want.to_vec(), notes), "{known:?} {own:?}");
    }
    // What the file does not say is not compared.
    let (c, mut unknown) = (config(), signature());
    assert!(prefer_configured_shapes(&c, &mut unknown).is_empty());
    assert_eq!(unknown, signature());
}

#[test]
fn types_are_compared_with_both_in_the_error() {
    let mut c = config();
    c.inputs[0].dtype = dtype::FP32;
    assert_eq!(
        refusal(&c),
        "unable to load model 'M', configuration expects datatype TYPE_FP32 for input 'b', model \
         provides TYPE_STRING"
    );
    let mut c = config();
    c.outputs.push(decl("z", dtype::FP32, &[1]));
    assert!(refusal(&c).ends_with("datatype TYPE_FP32 for output 'z', model provides resource"));
}

#[test]
fn sparse_tensors_are_refused_if_configured() {
    let mut signature = signature();
    signature.outputs[0].operation.clear();
    let text = check_signature(&config(), &signature).unwrap_err().text;
    assert!(text.contains("tensor 'y': the model has a sparse or composite tensor here"), "{text}");
}
