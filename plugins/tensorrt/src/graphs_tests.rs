//! Unit tests of `graphs.rs`.

use super::*;

fn shape(dims: &[i64]) -> TensorShape {
    TensorShape::new(dims).expect("at most eight dimensions")
}

fn spec(batch: i64, x: Option<&[i64]>, lower: Option<i64>) -> GraphSpec {
    GraphSpec {
        batch,
        inputs: x.map(|dims| ("x".to_owned(), dims.to_vec())).into_iter().collect(),
        lower: lower.map(|batch| Box::new(GraphSpec { batch, ..GraphSpec::default() })),
    }
}

const DIMS: &[(&str, &[i64])] = &[("x", &[-1, -1]), ("y", &[-1, 3])];

#[test]
fn spec_adds_the_batch_to_shapes_of_the_configuration() {
    let entry = GraphEntry::from_spec(&spec(8, Some(&[5]), None), DIMS, true).expect("an entry");
    assert_eq!(entry.shapes, [shape(&[8, 5]), shape(&[8, 3])]);
    assert!(entry.fits(&[shape(&[8, 5]), shape(&[8, 3])]));
    assert!(!entry.fits(&[shape(&[7, 5]), shape(&[7, 3])]));
    assert!(!entry.fits(&[shape(&[8, 4]), shape(&[8, 3])]));
}

#[test]
fn lower_bound_admits_smaller_batches() {
    let entry = GraphEntry::from_spec(&spec(8, Some(&[5]), Some(4)), DIMS, true).expect("an entry");
    assert!(entry.fits(&[shape(&[4, 5]), shape(&[4, 3])]));
    assert!(!entry.fits(&[shape(&[3, 5]), shape(&[3, 3])]));
    assert!(!entry.fits(&[shape(&[9, 5]), shape(&[9, 3])]));
}

#[test]
fn spec_that_does_not_fit_the_engine_is_refused() {
    let refused = |spec| GraphEntry::from_spec(&spec, DIMS, true).err().expect("refused");
    assert!(refused(spec(8, None, None)).contains("'x'"), "a dynamic dimension has no default");
    let mut other = spec(8, Some(&[5]), None);
    other.inputs.push(("z".to_owned(), vec![1]));
    assert!(refused(other).contains("'z'"));
    let mut wrong = spec(8, Some(&[5]), None);
    wrong.inputs.push(("y".to_owned(), vec![4]));
    assert!(refused(wrong).contains("[8,4]"));
}

#[test]
fn graph_with_the_least_padding_is_used() {
    let entries = [8, 4, 16].map(|batch| {
        GraphEntry::from_spec(&spec(batch, Some(&[5]), Some(1)), DIMS, true).expect("an entry")
    });
    let mut graphs = GraphCache { enabled: true, listed: true, entries: entries.into() };
    let mut of = |rows| graphs.entry(&[shape(&[rows, 5]), shape(&[rows, 3])]);
    assert_eq!(of(3), Some(1));
    assert_eq!(of(5), Some(0));
    assert_eq!(of(9), Some(2));
    assert_eq!(of(17), None);
}

#[test]
fn unlisted_shapes_get_graphs_up_to_a_limit() {
    let mut graphs = GraphCache { enabled: true, ..GraphCache::default() };
    for rows in 1..=MAX_GRAPHS as i64 {
        assert!(graphs.entry(&[shape(&[rows])]).is_some());
    }
    assert_eq!(graphs.entry(&[shape(&[100])]), None);
    assert_eq!(graphs.entry(&[shape(&[2])]), Some(1));
}
