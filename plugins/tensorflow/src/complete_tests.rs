//! Unit tests of `complete.rs`.

use super::*;
use crate::check::tests::tensor;

fn named() -> Config {
    Config { model: "M".into(), ..Config::default() }
}

#[test]
fn signature_of_a_saved_model_is_completed() {
    let signature = Signature {
        inputs: vec![tensor("a", 1, Some(&[-1, 16])), tensor("s", 7, Some(&[-1]))],
        outputs: vec![tensor("y", 3, Some(&[-1, -1]))],
        method: String::new(),
    };
    let text = saved_model(&named(), &signature, 4, |_| Ok(())).unwrap().text.unwrap();
    assert_eq!(
        text,
        "max_batch_size: 4\ndynamic_batching { }\n\
         input { name: \"a\" data_type: TYPE_FP32 dims: [ 16 ] }\n\
         input { name: \"s\" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }\n\
         output { name: \"y\" data_type: TYPE_INT32 dims: [ -1 ] }\n"
    );
}

#[test]
fn batch_size_needs_a_dynamic_first_dimension_of_all_tensors() {
    let signature = Signature {
        inputs: vec![tensor("a", 1, Some(&[-1, 16]))],
        outputs: vec![tensor("y", 1, Some(&[]))],
        method: String::new(),
    };
    assert_eq!(
        saved_model(&named(), &signature, 4, |_| Ok(())).unwrap().text.unwrap(),
        "input { name: \"a\" data_type: TYPE_FP32 dims: [ -1, 16 ] }\n\
         output { name: \"y\" data_type: TYPE_FP32 dims: [ 1 ] }\n"
    );
    let config = Config { max_batch_size: 2, ..named() };
    let text = saved_model(&config, &signature, 4, |_| Ok(())).unwrap_err().text;
    assert!(text.contains("model does not support batching"), "{text}");
}

#[test]
fn outputs_of_a_graph_that_cannot_be_expressed_are_left_out() {
    let ends = |outputs: Vec<_>| Signature {
        inputs: vec![tensor("x", 1, Some(&[-1, 2]))],
        outputs,
        method: String::new(),
    };
    let odd =
        || vec![tensor("adam", 20, Some(&[])), tensor("loss", 1, None), tensor("any", 0, None)];
    let mut outputs = odd();
    outputs.push(tensor("y", 1, Some(&[-1, 3])));
    let text = graph_def(&named(), ends(outputs), 1, |_| Ok(())).unwrap().text.unwrap();
    assert_eq!(
        text,
        "max_batch_size: 1\n\
         input { name: \"x\" data_type: TYPE_FP32 dims: [ 2 ] }\n\
         output { name: \"y\" data_type: TYPE_FP32 dims: [ 3 ] }\n"
    );
    let text = graph_def(&named(), ends(odd()), 4, |_| Ok(())).unwrap_err().text;
    assert!(text.contains("output 'adam' has elements of resource"), "{text}");
}
