//! Unit tests of `check.rs`.

use super::*;
use trtserver_plugin_api::abi::types::dtype;

pub fn declared(name: &str, element: i32, dims: &[i64]) -> Declared {
    Declared {
        name: name.into(),
        c_name: CString::new(name).unwrap(),
        element,
        dims: dims.to_vec(),
    }
}

fn decl(name: &str, dtype: u32, dims: &[i64]) -> Decl {
    Decl {
        name: name.into(),
        dtype,
        dims: dims.to_vec(),
        model_dims: dims.to_vec(),
        optional: false,
    }
}

fn model() -> Signature {
    Signature {
        inputs: vec![declared("a", 1, &[-1, 16]), declared("b", 7, &[-1, -1])],
        outputs: vec![declared("y", 1, &[-1, 16]), declared("z", 1, &[])],
        defaulted: vec![declared("bias", 1, &[16])],
    }
}

fn config(max_batch_size: usize) -> Config {
    let rest = |dims: &'static [i64]| if max_batch_size > 0 { &dims[1..] } else { dims };
    Config {
        model: "M".into(),
        max_batch_size,
        inputs: vec![
            decl("a", dtype::FP32, rest(&[-1, 16])),
            decl("b", dtype::INT64, rest(&[-1, 3])),
        ],
        outputs: vec![decl("y", dtype::FP32, rest(&[-1, 16]))],
        ..Config::default()
    }
}

fn refusal(config: &Config) -> String {
    check(config, &model()).unwrap_err().text
}

#[test]
fn plan_follows_order_of_configuration() {
    for max in [0, 8] {
        let mut config = config(max);
        config.inputs.reverse();
        let plan = check(&config, &model()).unwrap();
        let names: Vec<&str> = plan.inputs.iter().map(|slot| slot.name.as_str()).collect();
        assert_eq!(names, ["b", "a", "bias"]);
        assert!(plan.inputs[2].optional);
        assert_eq!(plan.outputs[0].dims, [-1, 16]);
        assert_eq!(plan.outputs[1].name, "z");
    }
}

#[test]
fn names() {
    let mut c = config(0);
    c.inputs[0].name = "q".into();
    assert!(refusal(&c).contains("unexpected inference input 'q', allowed inputs are: a, b, bias"));
    let mut c = config(0);
    c.outputs[0].name = "q".into();
    assert!(refusal(&c).contains("unexpected inference output 'q', allowed outputs are: y, z"));
    let mut c = config(0);
    c.inputs.pop();
    let text = refusal(&c);
    assert!(
        text.starts_with(
            "unable to load model 'M', configuration expects 1 inputs, model provides 2"
        )
    );
    assert!(text.ends_with("not configured: b"), "{text}");
    c.facts.host_inputs.push("b".into());
    assert!(check(&c, &model()).is_ok());
}

#[test]
fn types_and_shapes() {
    let mut c = config(0);
    c.inputs[0].dtype = dtype::FP64;
    assert_eq!(
        refusal(&c),
        "model 'M', tensor 'a': the model expects data type TYPE_FP32 but the model configuration \
         specifies data type TYPE_FP64"
    );
    let mut c = config(0);
    c.inputs[0].model_dims = vec![-1, 4, 4];
    assert_eq!(
        refusal(&c),
        "model 'M', tensor 'a': the model expects 2 dimensions (shape [-1,16]) but the model \
         configuration specifies 3 dimensions (shape [-1,4,4])"
    );
    let mut c = config(8);
    c.inputs[0].model_dims = vec![17];
    assert!(refusal(&c).contains("the model expects shape [-1,16] but"));
    assert!(refusal(&c).contains("making complete shape [-1,17]"));
}

#[test]
fn batching_needs_a_dynamic_first_dimension() {
    let mut signature = model();
    signature.inputs[0].dims[0] = 1;
    let text = check(&config(8), &signature).unwrap_err().text;
    assert!(text.contains("first dimension must be -1; but shape expected by the model is [1,16]"));
}

#[test]
fn reshaped_dims_are_compared_with_the_model() {
    let mut c = config(8);
    c.inputs[0].dims = vec![4, 4];
    c.inputs[0].model_dims = vec![16];
    let plan = check(&c, &model()).unwrap();
    assert_eq!(plan.inputs[0].reshape, Some((vec![4, 4], vec![16])));
}

#[test]
fn a_scalar_is_written_as_one_element() {
    let signature = Signature {
        inputs: vec![declared("a", 1, &[])],
        outputs: vec![declared("y", 1, &[])],
        defaulted: vec![],
    };
    let c = Config {
        model: "M".into(),
        inputs: vec![decl("a", dtype::FP32, &[1])],
        outputs: vec![decl("y", dtype::FP32, &[1])],
        ..Config::default()
    };
    let plan = check(&c, &signature).unwrap();
    assert!(plan.inputs[0].scalar && plan.outputs[0].scalar);
}

#[test]
fn unsupported_types_are_refused_only_if_configured() {
    let mut signature = model();
    signature.outputs.push(declared("map", 0, &[]));
    signature.outputs.push(declared("c64", 14, &[2]));
    assert_eq!(check(&config(0), &signature).unwrap().outputs.len(), 2);
    let mut c = config(0);
    c.outputs.push(decl("map", dtype::FP32, &[1]));
    assert!(check(&c, &signature).unwrap_err().text.contains("only dense tensors"));
    c.outputs[1].name = "c64".into();
    assert!(check(&c, &signature).unwrap_err().text.contains("data type complex64 but"));
}
