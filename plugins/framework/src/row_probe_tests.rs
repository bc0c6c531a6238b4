//! Unit tests of `row_probe.rs`.

use super::*;

type Run = fn(&[Vec<i64>]) -> Result<Vec<ProbedOutput>, PluginFault>;

fn output(shape: Vec<i64>) -> Result<Vec<ProbedOutput>, PluginFault> {
    Ok(vec![("y".into(), shape)])
}

fn probed(dims: &[i64], names: &[&str], run: Run) -> Result<(), String> {
    let dim_names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    expect_rows(&[ProbedInput { name: "x", dims, dim_names: &dim_names }], run)
}

#[test]
fn rows_of_a_run_are_counted() {
    let named = &["batch", "n"][..];
    for (dims, names, run, expected) in [
        (&[-1, 4][..], named, (|shapes| output(shapes[0].clone())) as Run, Ok(())),
        (
            &[-1, 4],
            named,
            |_| output(vec![0, 6]),
            Err("shape [0,6], whose first dimension is not 2"),
        ),
        (&[-1, 4], named, |_| output(vec![]), Err("shape []")),
        // Tokens of all rows, one after another.
        (&[-1, -1], named, |shapes| output(vec![shapes[0][0] * shapes[0][1]]), Err("[32]")),
        // Two rows by chance.
        (
            &[-1, 4],
            &[],
            |_| output(vec![2, 9]),
            Err("a run of 3 rows of zeros returned output 'y'"),
        ),
        // A square of the batch.
        (&[-1, -1], &["batch", "batch"], |shapes| output(shapes[0].clone()), Ok(())),
    ] {
        let result = probed(dims, names, run);
        match expected {
            Ok(()) => assert_eq!(result, Ok(()), "{dims:?} {names:?}"),
            Err(text) => assert!(result.clone().unwrap_err().contains(text), "{result:?}"),
        }
    }
}

#[test]
fn sizes_are_tried_until_a_run_succeeds() {
    fn at_400(shapes: &[Vec<i64>]) -> Result<Vec<ProbedOutput>, PluginFault> {
        match shapes[0][1] >= 400 {
            true => output(vec![shapes[0][0], 1]),
            false => Err(PluginFault::internal(format!("window of {}", shapes[0][1]))),
        }
    }
    assert_eq!(probed(&[-1, -1], &[], at_400), Ok(()));
    let failed =
        probed(&[-1, -1, -1, -1], &[], |_| Err(PluginFault::internal("never"))).unwrap_err();
    assert_eq!(failed, "a run of 2 rows of zeros fails: never");
    let failed = probed(&[-1, 3], &[], at_400).unwrap_err();
    assert!(failed.ends_with("window of 3"), "{failed}");
    let failed = probed(&[-1, 1 << 24], &[], |_| output(vec![2])).unwrap_err();
    assert!(failed.contains("input 'x' of shape [2,16777216] is too large"), "{failed}");
}
