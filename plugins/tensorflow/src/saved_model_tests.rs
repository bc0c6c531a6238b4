//! Unit tests of `saved_model.rs`.

use super::*;
use crate::tensorflow_files::{
    call, entry, field, library, meta_graph, node, number, shape, signature,
};

fn selection(params: &[(&str, &str)]) -> SignatureSelection {
    SignatureSelection::new(params.iter().copied())
}

/// What a directory with this `saved_model.pb` gives; errors with `DIR` for its path.
fn read(bytes: &[u8], params: &[(&str, &str)]) -> Result<NamedSignature, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(BINARY), bytes).unwrap();
    match read_saved_model_dir(dir.path(), &selection(params), "M") {
        Ok(signature) => Ok(signature.unwrap()),
        Err(fault) => Err(fault.text.replace(&dir.path().display().to_string(), "DIR")),
    }
}

fn name(signatures: &[&str], params: &[(&str, &str)]) -> Result<String, String> {
    read(&meta_graph(&["serve"], &[], signatures), params).map(|named| named.name)
}

#[test]
fn signature_is_read() {
    let named = read(&meta_graph(&["serve"], &[], &["serving_default"]), &[]).unwrap();
    let tensor =
        |name: &str, operation: &str, index, data_type, dims: Option<&[i64]>| GraphTensor {
            name: name.into(),
            operation: operation.into(),
            index,
            data_type,
            dims: dims.map(<[i64]>::to_vec),
        };
    let expected = Signature {
        inputs: vec![
            tensor("a", "serve_a", 1, 1, None),
            tensor("b", "serve_b", 0, 7, Some(&[-1, 4])),
        ],
        outputs: vec![tensor("y", "StatefulPartitionedCall", 2, 3, Some(&[-1]))],
        method: "tensorflow/serving/predict".into(),
    };
    assert_eq!(named.signature, expected);
}

#[test]
fn served_signature_is_the_default_the_only_or_the_named_one() {
    const INIT: &str = "__saved_model_init_op";
    assert_eq!(name(&["classify", "serving_default", INIT], &[]).unwrap(), "serving_default");
    assert_eq!(name(&["classify", INIT], &[]).unwrap(), "classify");
    let params = [(SIGNATURE_PARAMETER, "classify")];
    assert_eq!(name(&["classify", "serving_default"], &params).unwrap(), "classify");
    assert_eq!(
        name(&["b", "a", INIT], &[]).unwrap_err(),
        "unable to load model 'M', expected 'serving_default' signature; DIR/saved_model.pb has the \
         signatures 'a', 'b'; the parameter TF_SIGNATURE_DEF names the one to serve"
    );
    assert_eq!(
        name(&[INIT], &[]).unwrap_err(),
        "unable to load model 'M', expected 'serving_default' signature; DIR/saved_model.pb has no \
         signature"
    );
    let error = name(&["serving_default"], &params).unwrap_err();
    assert!(error.starts_with("unable to load model 'M', expected 'classify' signature;"));
}

#[test]
fn graph_is_chosen_by_its_tags() {
    let both = [
        meta_graph(&["serve", "gpu"], &[], &["serving_default", "x"]),
        meta_graph(&["train"], &[], &["y"]),
    ]
    .concat();
    assert_eq!(read(&both, &[(TAG_PARAMETER, "train")]).unwrap().name, "y");
    assert_eq!(read(&both, &[(TAG_PARAMETER, "gpu, serve")]).unwrap().name, "serving_default");
    assert_eq!(
        read(&both, &[]).unwrap_err(),
        "unable to load model 'M', expected 'serve' tag; DIR/saved_model.pb has graphs with the tags \
         'serve,gpu', 'train'; the parameter TF_GRAPH_TAG names another"
    );
    let error = read(&[], &[]).unwrap_err();
    assert!(error.contains("expected 'serve' tag; DIR/saved_model.pb has no graph;"), "{error}");
}

#[test]
fn sparse_tensors_have_no_operation() {
    let sparse = field(4, field(1, "values:0"));
    let message = entry(2, "s", [sparse, number(2, 1), field(3, shape(None))].concat());
    let signature = super::signature(&message).unwrap();
    assert_eq!((signature.outputs[0].operation.as_str(), signature.outputs[0].data_type), ("", 1));
}

#[test]
fn malformed_files_are_refused_by_name() {
    let good = meta_graph(&["serve"], &call(1, "x", "f"), &["serving_default"]);
    for end in 1..good.len() {
        assert_eq!(
            read(&good[..end], &[]).unwrap_err(),
            "unable to load model 'M' from DIR/saved_model.pb: not a SavedModel: truncated message"
        );
    }
    let error = read(b"version https://git-lfs.github.com/spec/v1\n", &[]).unwrap_err();
    assert!(error.contains("DIR/saved_model.pb: not a SavedModel: "), "{error}");
    let cyclic = [call(1, "x", "f"), library(&[("f", &["f"])])].concat();
    assert_eq!(
        read(&meta_graph(&["serve"], &cyclic, &["serving_default"]), &[]).unwrap_err(),
        "unable to load model 'M' from DIR/saved_model.pb: cyclic function library: f -> f"
    );
}

#[test]
fn variables_that_are_restored_need_their_file() {
    let saver = field(3, field(3, "save/restore_all"));
    let model = |kind, saver: &[u8]| {
        let graph = field(2, node("v", kind, &[]));
        field(2, [field(1, field(4, "serve")), graph, signature("s"), saver.to_vec()].concat())
    };
    assert!(read(&model("VarHandleOp", &[]), &[]).is_ok());
    assert!(read(&model("Const", &saver), &[]).is_ok());
    assert_eq!(
        read(&model("VarHandleOp", &saver), &[]).unwrap_err(),
        "unable to load model 'M' from DIR/saved_model.pb: the graph has variables, but there is no \
         file DIR/variables/variables.index"
    );
}

#[test]
fn directories_without_a_file_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(!is_saved_model(dir.path()));
    let error = read_saved_model_dir(dir.path(), &selection(&[]), "M").unwrap_err().text;
    assert!(error.starts_with("unable to find model '"), "{error}");
    assert!(error.ends_with("saved_model.pb"), "{error}");
    std::fs::write(dir.path().join("saved_model.pbtxt"), "").unwrap();
    assert!(is_saved_model(dir.path()));
    assert_eq!(read_saved_model_dir(dir.path(), &selection(&[]), "M"), Ok(None));
}

#[test]
fn files_beyond_the_limit_of_protobuf_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join(BINARY)).unwrap();
    file.set_len(proto::MAX_BYTES + 1).unwrap();
    let error = read_saved_model_dir(dir.path(), &selection(&[]), "M").unwrap_err().text;
    assert!(error.ends_with("has 2147483648 bytes, the limit of a protobuf file is 2147483647"));
}
