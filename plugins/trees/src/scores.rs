//! Outputs from the framework's values: converted, as a class, or as two probabilities.

/// What becomes of the scores of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ScoreForm {
    /// The scores themselves.
    Plain,
    /// Of one score p: 1 - p and p.
    Pair,
    /// The number of the largest score; of one score, whether it is above the threshold.
    Class { threshold: f64 },
}

impl ScoreForm {
    /// Values of a row that has this many scores.
    pub fn width(self, scores: usize) -> usize {
        match self {
            ScoreForm::Plain => scores,
            ScoreForm::Pair => 2,
            ScoreForm::Class { .. } => 1,
        }
    }
}

/// A type of the framework's values.
pub trait Score: Copy + PartialOrd {
    const ONE: Self;
    fn minus(self, other: Self) -> Self;
    fn to_f64(self) -> f64;
}

impl Score for f32 {
    const ONE: f32 = 1.0;
    fn minus(self, other: f32) -> f32 {
        self - other
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Score for f64 {
    const ONE: f64 = 1.0;
    fn minus(self, other: f64) -> f64 {
        self - other
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// A type of outputs.
pub trait OutputElement: Copy {
    fn from_f64(value: f64) -> Self;
}

impl OutputElement for f32 {
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
}

impl OutputElement for f64 {
    fn from_f64(value: f64) -> f64 {
        value
    }
}

impl OutputElement for i32 {
    fn from_f64(value: f64) -> i32 {
        value as i32
    }
}

/// Writes rows of `scores` values each. `out` has [`ScoreForm::width`] elements for each row.
pub fn write_rows<S: Score, O: OutputElement>(
    form: ScoreForm,
    scores: usize,
    values: &[S],
    out: &mut [O],
) {
    match form {
        ScoreForm::Plain => {
            for (to, value) in out.iter_mut().zip(values) {
                *to = O::from_f64(value.to_f64());
            }
        }
        ScoreForm::Pair => {
            for (to, value) in out.chunks_exact_mut(2).zip(values) {
                // In the framework's type, as its Python package subtracts.
                to[0] = O::from_f64(S::ONE.minus(*value).to_f64());
                to[1] = O::from_f64(value.to_f64());
            }
        }
        ScoreForm::Class { threshold } => {
            for (to, row) in out.iter_mut().zip(values.chunks_exact(scores.max(1))) {
                let class = match row {
                    [one] => usize::from(one.to_f64() > threshold),
                    row => position_of_largest(row),
                };
                *to = O::from_f64(class as f64);
            }
        }
    }
}

/// The first of several that are equal.
fn position_of_largest<S: Score>(row: &[S]) -> usize {
    let mut largest = 0;
    for (at, value) in row.iter().enumerate() {
        if *value > row[largest] {
            largest = at;
        }
    }
    largest
}

#[cfg(test)]
#[path = "scores_tests.rs"]
mod tests;
