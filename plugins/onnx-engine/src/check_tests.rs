//! Unit tests of `check.rs`.

use super::*;
use trtserver_framework::check::TensorDeclaration as _;

fn declared(element: i32, dims: &[i64]) -> SessionTensor {
    let (kind, dim_names) = (i32::from(element != 0), vec![String::new(); dims.len()]);
    SessionTensor {
        name: "a".into(),
        c_name: c"a".into(),
        kind,
        element,
        dims: dims.to_vec(),
        dim_names,
    }
}

#[test]
fn elements_are_tensors_of_known_types_others_or_no_tensors() {
    assert_eq!(declared(8, &[2]).element(), Element::Known(dtype::STRING));
    assert_eq!(declared(14, &[2]).element(), Element::Foreign("complex64".into()));
    assert!(matches!(declared(0, &[]).element(), Element::NotDense(_)));
}

#[test]
fn no_dimensions_may_mean_an_unknown_shape() {
    assert_eq!(declared(1, &[-1, 16]).dims(), Dims::Known(&[-1, 16]));
    assert_eq!(declared(1, &[]).dims(), Dims::ScalarOrUnknown);
    assert_eq!(declared(1, &[]).handle(dtype::FP64).unwrap().element as i32, 11);
}
