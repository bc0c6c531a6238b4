//! Models as clients see them: batches, completion, and errors at load.

use super::{outputs, spec, start, version};
use crate::netdef::read_net;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    Backend, InstanceSpec, ModelSpec, Request, TensorSpec, bytes, values,
};

const INIT: &str = r#"
op { output: "w" type: "GivenTensorFill" arg { name: "shape" ints: 2 ints: 3 }
     arg { name: "values" floats: 1 floats: 2 floats: 3 floats: 4 floats: 5 floats: 6 } }
op { output: "b" type: "ConstantFill" arg { name: "shape" ints: 2 } arg { name: "value" f: 0.5 } }
"#;
const PREDICT: &str = r#"
op { input: "x" input: "w" input: "b" output: "y" type: "FC" } external_input: "unused"
external_input: "x" external_input: "w" external_input: "b" external_output: "y"
"#;

fn fully_connected(dir: &tempfile::TempDir, max_batch_size: i32) -> ModelSpec {
    ModelSpec {
        max_batch_size,
        inputs: vec![TensorSpec::new("x", dtype::FP32, &[3])],
        outputs: vec![TensorSpec::new("y", dtype::FP32, &[2])],
        ..spec(dir)
    }
}

fn dir() -> tempfile::TempDir {
    version(&read_net(INIT.as_bytes()).unwrap(), &read_net(PREDICT.as_bytes()).unwrap())
}

#[test]
fn batches_are_executed_in_one_run() {
    let (_session, backend) = start();
    let dir = dir();
    let model = backend.open_model(&fully_connected(&dir, 8)).unwrap();
    let instance = model.open_instance(&InstanceSpec::default()).unwrap();
    let request = |rows: usize, value: f32| {
        let data = bytes(&vec![value; rows * 3]);
        Request::new(rows as u32)
            .input("x", dtype::FP32, &[rows as i64, 3], &data)
            .request_output("y")
    };
    let outcomes = instance.execute(&[request(1, 1.0), request(2, 2.0)]);
    let found = |nth: usize| -> Vec<f32> { values(&outputs(&outcomes[nth])[0].data) };
    assert_eq!(found(0), [6.5, 15.5]);
    assert_eq!(found(1), [12.5, 30.5, 12.5, 30.5]);
}

#[test]
fn text_files_are_read() {
    let (_session, backend) = start();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("init_net.txt"), INIT).unwrap();
    std::fs::write(dir.path().join("net.txt"), PREDICT).unwrap();
    let spec = ModelSpec { file: "net.txt".to_owned(), ..fully_connected(&dir, 8) };
    backend.open_model(&spec).unwrap();
}

#[test]
fn weights_may_be_inputs() {
    let (_session, backend) = start();
    let dir = dir();
    let mut spec = fully_connected(&dir, 0);
    spec.inputs[0] = TensorSpec::new("x", dtype::FP32, &[-1, 3]);
    spec.inputs.push(TensorSpec::new("b", dtype::FP32, &[2]));
    spec.outputs[0] = TensorSpec::new("y", dtype::FP32, &[-1, 2]);
    let instance =
        backend.open_model(&spec).unwrap().open_instance(&InstanceSpec::default()).unwrap();
    let request = Request::new(1)
        .input("x", dtype::FP32, &[1, 3], &bytes(&[1.0f32; 3]))
        .input("b", dtype::FP32, &[2], &bytes(&[10.0f32, 20.0]))
        .request_output("y");
    let outcomes = instance.execute(&[request]);
    assert_eq!(values::<f32>(&outputs(&outcomes[0])[0].data), [16.0, 35.0]);
}

#[test]
fn outputs_are_completed_and_inputs_are_not() {
    let (_session, backend) = start();
    let dir = dir();
    let complete = |spec: &ModelSpec| -> String {
        let patches = backend.autocomplete(spec).unwrap().unwrap();
        patches.into_iter().map(|(_, patch)| String::from_utf8(patch).unwrap()).collect()
    };
    let mut spec = fully_connected(&dir, 8);
    spec.outputs.clear();
    let output = "output { name: \"y\" data_type: TYPE_FP32 dims: [ 2 ] }\n";
    assert_eq!(complete(&spec), format!("dynamic_batching {{ }}\n{output}"));
    spec.inputs.clear();
    assert_eq!(complete(&spec), "");
}

/// As in TRTIS, which knows no shapes of a net before it runs.
#[test]
fn wrong_dims_of_an_output_are_an_error_of_the_run() {
    let (session, backend) = start();
    let dir = dir();
    let mut spec = fully_connected(&dir, 8);
    spec.outputs[0] = TensorSpec::new("y", dtype::FP32, &[3]);
    let model = backend.open_model(&spec).unwrap();
    assert!(session.logged(
        "output 'y': the file declares shape [-1,2], the model configuration specifies [-1,3]"
    ));
    let instance = model.open_instance(&InstanceSpec::default()).unwrap();
    let request = Request::new(1).input("x", dtype::FP32, &[1, 3], &[0; 12]).request_output("y");
    let failure = instance.execute(&[request])[0].result.clone().unwrap_err();
    let expected =
        "output 'y' for model 'M' has shape [1,2] but model configuration specifies shape [-1,3]";
    assert_eq!(failure.text, expected);
}

type Change = dyn Fn(&mut ModelSpec);

#[test]
fn load_errors_name_the_cause() {
    let (_session, backend) = start();
    let error = |backend: &Backend, spec: &ModelSpec| backend.open_model(spec).err().unwrap().text;
    let dir = dir();
    let with = |change: &Change| {
        let mut spec = fully_connected(&dir, 8);
        change(&mut spec);
        error(&backend, &spec)
    };
    let cases: [(&Change, &str); 6] = [
        (
            &|spec| spec.inputs[0] = TensorSpec::new("x", dtype::STRING, &[3]),
            "unsupported datatype TYPE_STRING for input 'x' for model 'M'",
        ),
        (
            &|spec| spec.outputs[0] = TensorSpec::new("y", dtype::UINT64, &[2]),
            "unsupported datatype TYPE_UINT64 for output 'y' for model 'M'",
        ),
        (
            &|spec| spec.inputs[0] = TensorSpec::new("q", dtype::FP32, &[3]),
            "unexpected inference input 'q', allowed inputs are: x",
        ),
        (
            &|spec| spec.inputs.clear(),
            "configuration expects 0 inputs, model provides 1; not configured: x",
        ),
        (
            &|spec| spec.outputs[0] = TensorSpec::new("z", dtype::FP32, &[2]),
            "unexpected inference output 'z', allowed outputs are: y",
        ),
        (
            &|spec| spec.outputs[0] = TensorSpec::new("y", dtype::INT32, &[2]),
            "configuration expects datatype TYPE_INT32 for output 'y', model provides TYPE_FP32",
        ),
    ];
    for (change, expected) in cases {
        let text = with(change);
        assert!(text.contains(expected), "{text}");
    }
    let text = with(&|spec| spec.inputs[0] = TensorSpec::new("x", dtype::FP32, &[4]));
    let expected =
        "model.netdef: operator 'FC' (number 0, output 'y'): its input has 4 elements in a row";
    assert!(text.contains(expected), "{text}");

    let damaged = |file: &str, contents: &[u8]| {
        let dir = super::version(
            &read_net(INIT.as_bytes()).unwrap(),
            &read_net(PREDICT.as_bytes()).unwrap(),
        );
        std::fs::write(dir.path().join(file), contents).unwrap();
        error(&backend, &fully_connected(&dir, 8))
    };
    let text = damaged("init_model.netdef", b"\x12\xff\xff\xff\xff");
    assert!(text.contains("init_model.netdef: it is not a binary NetDef"), "{text}");
    let random = INIT.replace("\"GivenTensorFill\"", "\"XavierFill\"");
    let text = damaged("init_model.netdef", random.as_bytes());
    assert!(
        text.contains("init_model.netdef: operator 'XavierFill' (number 0, output 'w')"),
        "{text}"
    );
    let unknown = PREDICT.replace("\"FC\"", "\"RoIAlign\"");
    let text = damaged("model.netdef", unknown.as_bytes());
    assert!(text.contains("model.netdef: operator 'RoIAlign' (number 0, output 'y')"), "{text}");
}

#[test]
fn sequence_controls_are_inputs() {
    let (_session, backend) = start();
    let predict = r#"
        op { input: "x" input: "START" output: "y" type: "Add" } external_input: "x" external_input: "START"
        external_output: "y""#;
    let dir =
        version(&read_net(b"name: \"init\"").unwrap(), &read_net(predict.as_bytes()).unwrap());
    let mut spec = fully_connected(&dir, 8);
    spec.inputs[0] = TensorSpec::new("x", dtype::FP32, &[1]);
    spec.outputs[0] = TensorSpec::new("y", dtype::FP32, &[1]);
    // sequence_batching { control_input { name: "START" control { fp32_false_true: [0, 1] } } }
    let control =
        [b"\x0a\x05START\x12\x0a\x1a\x08".as_slice(), &[0; 4], &1f32.to_le_bytes()].concat();
    spec.config_pb =
        [&[106, control.len() as u8 + 2, 18, control.len() as u8], &control[..]].concat();
    let model = backend.open_model(&spec).unwrap();
    let instance = model.open_instance(&InstanceSpec::default()).unwrap();
    let request = Request::new(1)
        .input("x", dtype::FP32, &[1, 1], &bytes(&[41.0f32]))
        .input("START", dtype::FP32, &[1, 1], &bytes(&[1.0f32]))
        .request_output("y");
    let outcomes = instance.execute(&[request]);
    assert_eq!(values::<f32>(&outputs(&outcomes[0])[0].data), [42.0]);
}
