//! Unit tests of `check.rs`.

use super::*;
use trtserver_plugin_api::abi::types::dtype;

/// A tensor of a test's model.
#[derive(Debug)]
pub struct Tensor {
    name: String,
    element: Element,
    /// `None` = unknown.
    dims: Option<Vec<i64>>,
    may_be_scalar: bool,
    first_dim_name: Option<&'static str>,
}

impl Tensor {
    /// The same with a name of its first dimension.
    pub fn named(self, first_dim_name: Option<&'static str>) -> Self {
        Self { first_dim_name, ..self }
    }
}

impl TensorDeclaration for Tensor {
    type Handle = u32;

    fn first_dim_name(&self) -> Option<&str> {
        self.first_dim_name
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn element(&self) -> Element {
        self.element.clone()
    }

    fn dims(&self) -> Dims<'_> {
        match &self.dims {
            Some(dims) => Dims::Known(dims),
            None if self.may_be_scalar => Dims::ScalarOrUnknown,
            None => Dims::Unknown,
        }
    }

    fn handle(&self, dtype: u32) -> Option<u32> {
        Some(dtype)
    }
}

pub fn tensor(name: &str, element: Element, dims: Option<&[i64]>) -> Tensor {
    let dims = dims.map(<[i64]>::to_vec);
    Tensor { name: name.into(), element, dims, may_be_scalar: false, first_dim_name: None }
}

/// A model's tensors.
#[derive(Debug, Default)]
pub struct Owned {
    pub inputs: Vec<Tensor>,
    pub defaulted: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
}

impl Owned {
    pub fn tensors(&self) -> ModelTensors<'_, Tensor> {
        ModelTensors { inputs: &self.inputs, defaulted: &self.defaulted, outputs: &self.outputs }
    }
}

fn decl(name: &str, dtype: u32, dims: &[i64]) -> ConfiguredTensor {
    ConfiguredTensor {
        name: name.into(),
        dtype,
        dims: dims.to_vec(),
        model_dims: dims.to_vec(),
        ..ConfiguredTensor::default()
    }
}

fn model() -> Owned {
    let known = |name, dtype, dims| tensor(name, Element::Known(dtype), dims);
    Owned {
        inputs: vec![
            known("a", dtype::FP32, Some(&[-1, 16])),
            known("b", dtype::INT64, Some(&[-1, -1])),
        ],
        outputs: vec![known("y", dtype::FP32, Some(&[-1, 16])), known("z", dtype::FP32, None)],
        defaulted: vec![known("bias", dtype::FP32, Some(&[16]))],
    }
}

/// The plan, or the text of the error.
fn plan(config: &Config, model: &Owned) -> Result<TensorPlan<u32>, String> {
    check_tensors(config, &model.tensors()).map_err(|fault| fault.text)
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
    plan(config, &model()).unwrap_err()
}

#[test]
fn plan_follows_order_of_configuration() {
    for max in [0, 8] {
        let mut config = config(max);
        config.inputs.reverse();
        let plan = plan(&config, &model()).unwrap();
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
    for name in ["q", "r"] {
        c.inputs.push(decl(name, dtype::FP32, &[1]));
    }
    assert_eq!(
        refusal(&c),
        "unable to load model 'M', configuration expects 4 inputs, model provides 3; unexpected \
         inference input 'q', allowed inputs are: a, b, bias"
    );
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
    assert!(plan(&c, &model()).is_ok());
}

#[test]
fn types_and_shapes() {
    let mut c = config(0);
    c.inputs[0].dtype = dtype::FP64;
    assert_eq!(
        refusal(&c),
        "unable to load model 'M', configuration expects datatype TYPE_FP64 for input 'a', model \
         provides TYPE_FP32"
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
    assert_eq!(
        refusal(&c),
        "model 'M', tensor 'a': the model expects 2 dimensions (shape [-1,16]) but the model \
         configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 \
         followed by the explicit tensor shape, making complete shape [-1,17])"
    );
}

#[test]
fn batching_needs_a_dynamic_first_dimension() {
    let mut model = model();
    model.inputs[0].dims = Some(vec![1, 16]);
    let text = plan(&config(8), &model).unwrap_err();
    assert!(text.contains("first dimension must be -1; but shape expected by the model is [1,16]"));
    model.inputs[0].dims = Some(vec![]);
    let text = plan(&config(8), &model).unwrap_err();
    assert!(text.contains("should have at least 1 dimension"), "{text}");
}

#[test]
fn reshaped_dims_are_compared_with_the_model() {
    let mut c = config(8);
    c.inputs[0].dims = vec![4, 4];
    c.inputs[0].model_dims = vec![16];
    let plan = plan(&c, &model()).unwrap();
    assert_eq!(plan.inputs[0].reshape, Some((vec![4, 4], vec![16])));
}

#[test]
fn a_scalar_is_written_as_one_element() {
    let scalar = |may_be_scalar, dims: Option<&[i64]>| {
        let one =
            |name| Tensor { may_be_scalar, ..tensor(name, Element::Known(dtype::FP32), dims) };
        Owned { inputs: vec![one("a")], outputs: vec![one("y")], ..Owned::default() }
    };
    let config = |dims: &[i64]| Config {
        model: "M".into(),
        inputs: vec![decl("a", dtype::FP32, dims)],
        outputs: vec![decl("y", dtype::FP32, dims)],
        ..Config::default()
    };
    for model in [scalar(false, Some(&[])), scalar(true, None)] {
        let plan = plan(&config(&[1]), &model).unwrap();
        assert!(plan.inputs[0].scalar && plan.outputs[0].scalar);
    }
    let unknown = plan(&config(&[1]), &scalar(false, None)).unwrap();
    assert!(!unknown.inputs[0].scalar && unknown.inputs[0].unranked);
    let text = plan(&config(&[2]), &scalar(false, Some(&[]))).unwrap_err();
    assert!(text.contains("the model expects 0 dimensions (shape []) but"), "{text}");
}

#[test]
fn unsupported_types_are_refused_only_if_configured() {
    let mut model = model();
    model.outputs.push(tensor("map", Element::NotDense("a map"), None));
    model.outputs.push(tensor("c64", Element::Foreign("complex64".into()), Some(&[2])));
    assert_eq!(plan(&config(0), &model).unwrap().outputs.len(), 2);
    let mut c = config(0);
    c.outputs.push(decl("map", dtype::FP32, &[1]));
    assert!(plan(&c, &model).unwrap_err().contains("has a map here; only dense tensors"));
    c.outputs[1].name = "c64".into();
    assert!(plan(&c, &model).unwrap_err().contains("model provides complex64"));
}

#[test]
fn type_that_the_file_does_not_state_is_the_configured_one() {
    let mut model = model();
    model.outputs[0].element = Element::Unknown;
    assert_eq!(plan(&config(0), &model).unwrap().outputs[0].handle, dtype::FP32);
    // Nor can the host name such a tensor.
    model.outputs[1].element = Element::Unknown;
    assert_eq!(plan(&config(0), &model).unwrap().outputs.len(), 1);
}

/// A tensor of a file whose output shapes are hints.
struct Hinted(Tensor);

impl TensorDeclaration for Hinted {
    type Handle = u32;

    const OUTPUT_SHAPES_ARE_HINTS: bool = true;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn element(&self) -> Element {
        self.0.element()
    }

    fn dims(&self) -> Dims<'_> {
        self.0.dims()
    }

    fn handle(&self, dtype: u32) -> Option<u32> {
        Some(dtype)
    }
}

#[test]
fn configured_shapes_of_outputs_win_over_hints() {
    let plan = |max_batch_size, declared: Option<&[i64]>, configured: &[i64]| {
        let hinted = |name, dims| Hinted(tensor(name, Element::Known(dtype::FP32), dims));
        let (inputs, outputs) = ([hinted("a", Some(&[-1, 16]))], [hinted("y", declared)]);
        let rest = if max_batch_size > 0 { &[16][..] } else { &[-1, 16] };
        let config = Config {
            model: "M".into(),
            max_batch_size,
            inputs: vec![decl("a", dtype::FP32, rest)],
            outputs: vec![decl("y", dtype::FP32, configured)],
            ..Config::default()
        };
        let tensors = ModelTensors { inputs: &inputs, defaulted: &[], outputs: &outputs };
        check_tensors(&config, &tensors).map_err(|fault| fault.text)
    };
    for (max, declared, configured, full, binding, contradicts) in [
        // What completion writes does not bind.
        (0, Some(&[1][..]), &[1][..], &[1][..], false, false),
        (8, Some(&[-1, 16]), &[16], &[-1, 16], false, false),
        (0, Some(&[3, 0]), &[3, -1], &[3, -1], false, false),
        (0, Some(&[]), &[1], &[1], false, false),
        // The user says more, less, or something else.
        (0, Some(&[-1]), &[4], &[4], true, false),
        (0, Some(&[1]), &[-1], &[-1], true, false),
        (0, Some(&[1, -1]), &[15, 1, -1], &[15, 1, -1], true, true),
        (8, Some(&[1]), &[3], &[-1, 3], true, true),
        (0, None, &[2], &[2], true, false),
    ] {
        let plan = plan(max, declared, configured).unwrap();
        let slot = &plan.outputs[0];
        let ConfiguredShape { dims, binding: binds, contradicts: other } =
            slot.configured.clone().unwrap();
        assert_eq!(
            (&dims[..], binds, other.is_some()),
            (full, binding, contradicts),
            "{declared:?}"
        );
        assert_eq!(plan.notes.len(), usize::from(contradicts), "{:?}", plan.notes);
        let used = if contradicts { full } else { declared.unwrap_or_default() };
        assert_eq!(slot.dims, used);
    }
    let plan = plan(0, Some(&[1, -1]), &[15, 1, -1]).unwrap();
    assert_eq!(
        plan.notes,
        [
            "output 'y': the file declares shape [1,-1], the model configuration specifies [15,1,-1], which is used"
        ]
    );
}
