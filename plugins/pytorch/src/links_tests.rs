//! Dimensions that have to be equal.

use super::*;
use crate::source::read_inputs;
use std::fmt::Write;

/// Generated code of inputs with these upper bounds; `leads`: input and dimension.
fn inputs(bounds: &[&[i64]], leads: &[Place]) -> Vec<CodeInput> {
    let mut code = String::new();
    for (at, upper) in bounds.iter().enumerate() {
        let _ = writeln!(code, "inputs_info_[{at}].name = \"a{at}\";");
        let _ = writeln!(
            code,
            "\"input_handles[{at}]: unmatched dtype, \"\n \"expected: \"(at::kFloat)"
        );
        for (dim, upper) in upper.iter().enumerate() {
            let _ = writeln!(
                code,
                "\"input_handles[{at}]: dim value is too large at {dim}, \"\n\"expected to be <= {upper}, \""
            );
        }
    }
    for (input, dim) in leads {
        let _ = writeln!(code, "int64_t s{input}{dim} = a{input}_size[{dim}];");
    }
    read_inputs(&code, bounds.len()).expect("inputs")
}

fn fault(links: &SizeLinks, shapes: &[&[i64]]) -> Option<String> {
    let shapes: Vec<Vec<i64>> = shapes.iter().map(|shape| shape.to_vec()).collect();
    links.check(&shapes, |at| ["x", "mask"][at]).err().map(|fault| fault.text)
}

#[test]
fn followers_have_the_size_of_a_leader_with_their_bounds() {
    let links = SizeLinks::new(&inputs(&[&[64, 512], &[64, 512]], &[(0, 0), (0, 1)]));
    assert_eq!(links.unknown, []);
    assert_eq!(fault(&links, &[&[2, 30], &[2, 30]]), None);
    let text = fault(&links, &[&[2, 30], &[2, 29]]).expect("a fault");
    for part in
        ["dimension 1 of input 'mask' of shape [2,29]", "dimension 1 of 'x' of shape [2,30]"]
    {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(fault(&links, &[&[2, 30], &[3, 30]]).is_some());
    // Equal bounds: either leader may be the one.
    let links = SizeLinks::new(&inputs(&[&[64, 64], &[64]], &[(0, 0), (0, 1)]));
    assert_eq!(fault(&links, &[&[2, 3], &[3]]), None);
    assert_eq!(fault(&links, &[&[2, 3], &[2]]), None);
    assert!(fault(&links, &[&[2, 3], &[4]]).is_some());
}

#[test]
fn dimensions_without_a_leader_are_reported() {
    let links = SizeLinks::new(&inputs(&[&[64], &[128]], &[(0, 0)]));
    assert_eq!(links.unknown, [(1, 0)]);
    assert_eq!(fault(&links, &[&[2], &[4]]), None);
}
