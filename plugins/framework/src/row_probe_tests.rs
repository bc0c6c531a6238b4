//! Unit tests of `row_probe.rs`.

use super::*;

use std::cell::Cell;
use trtserver_plugin_api::abi::types::dtype;

type Run = fn(&[Vec<i64>]) -> Result<Vec<ProbedOutput>, PluginFault>;

fn output(shape: Vec<i64>) -> Result<Vec<ProbedOutput>, PluginFault> {
    Ok(vec![ProbedOutput { name: "y".into(), shape, dtype: dtype::FP32, elements: Vec::new() }])
}

fn probed(dims: &[i64], names: &[&str], run: Run) -> Result<(), String> {
    let dim_names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    expect_rows(&[ProbedInput { name: "x", dims, dim_names: &dim_names }], |probe| {
        assert!(!probe.compares());
        run(probe.shapes)
    })
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

/// A model of rows of four numbers.
fn judged(compute: impl Fn(&mut [[f32; 4]])) -> Result<(), String> {
    let inputs = [ProbedInput { name: "x", dims: &[-1, 4], dim_names: &[] }];
    expect_batch(&inputs, |run| {
        let rows = run.shapes[0][0] as usize;
        let mut bytes = vec![0; rows * 16];
        run.write_input(dtype::FP32, &mut bytes);
        let element = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut values: Vec<[f32; 4]> =
            (0..rows).map(|row| [0, 1, 2, 3].map(|at| element(row * 16 + at * 4))).collect();
        compute(&mut values);
        let elements = match run.compares() {
            true => values.iter().flatten().flat_map(|value| value.to_le_bytes()).collect(),
            false => Vec::new(),
        };
        Ok(vec![ProbedOutput {
            dtype: dtype::FP32,
            elements,
            ..output(vec![rows as i64, 4])?.remove(0)
        }])
    })
}

#[test]
fn rows_that_depend_on_others_are_found() {
    type Compute = fn(&mut [[f32; 4]]);
    let sum = |rows: &[[f32; 4]], at: usize| rows.iter().map(|row| row[at]).sum::<f32>();
    let dependent: [(&str, Compute); 3] = [
        ("sum of the rows before", |rows| {
            (1..rows.len())
                .for_each(|row| (0..4).for_each(|at| rows[row][at] += rows[row - 1][at]));
        }),
        ("sum of the rows behind", |rows| {
            (0..rows.len() - 1)
                .rev()
                .for_each(|row| (0..4).for_each(|at| rows[row][at] += rows[row + 1][at]));
        }),
        ("rows in the other order", |rows| rows.rotate_left(1)),
    ];
    for (what, compute) in dependent {
        let expected = "a row of output 'y' depends on the other rows of the run";
        assert_eq!(judged(compute), Err(expected.to_owned()), "{what}");
    }
    let normalised = judged(|rows| {
        let sums = [0, 1, 2, 3].map(|at| sum(rows, at).max(1e-3));
        rows.iter_mut().for_each(|row| (0..4).for_each(|at| row[at] /= sums[at]));
    });
    assert!(normalised.is_err());
    assert_eq!(judged(|_| ()), Ok(()));
    assert_eq!(judged(|rows| rows.iter_mut().for_each(|row| row[0] = row.iter().sum())), Ok(()));
    // A network that scales all elements by the largest one and rounds them.
    assert_eq!(
        judged(|rows| rows.iter_mut().flatten().for_each(|x| *x = (*x * 99.0).round())),
        Ok(())
    );
}

#[test]
fn random_results_say_nothing_about_rows() {
    let drawn = Cell::new(1.0);
    let random = judged(|rows| {
        rows.iter_mut().flatten().for_each(|element| {
            drawn.set(drawn.get() * 1.7 % 10.0);
            *element = drawn.get();
        });
    });
    assert_eq!(random, Ok(()));
}

#[test]
fn numbers_that_a_model_refuses_say_nothing_about_rows() {
    let inputs = [ProbedInput { name: "x", dims: &[-1, 4], dim_names: &[] }];
    let result = expect_batch(&inputs, |run| match run.compares() {
        true => Err(PluginFault::internal("index out of range")),
        false => output(run.shapes[0].clone()),
    });
    assert_eq!(result, Ok(()));
}
