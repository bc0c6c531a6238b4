//! Optimisation profiles: which one a batch fits, and the refusal of shapes that fit none.

use crate::vtable::TensorShape;
use trtserver_framework::types::shape_text;

/// The shapes of one input that a profile allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub min: TensorShape,
    pub opt: TensorShape,
    pub max: TensorShape,
    /// The least and the greatest values of a shape tensor.
    pub values: Option<[Vec<i64>; 2]>,
}

/// A profile of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// By name of the input.
    pub ranges: Vec<(String, Range)>,
}

impl Range {
    pub fn fixed(shape: TensorShape) -> Range {
        Range { min: shape, opt: shape, max: shape, values: None }
    }

    pub fn allows(&self, shape: &[i64]) -> bool {
        let (min, max) = (self.min.dims(), self.max.dims());
        shape.len() == min.len()
            && shape.iter().zip(min.iter().zip(max)).all(|(d, (min, max))| (min..=max).contains(&d))
    }

    /// How far a shape is from the optimum.
    pub fn distance(&self, shape: &[i64]) -> u64 {
        let far = |(a, b): (&i64, &i64)| a.abs_diff(*b);
        self.opt.dims().iter().zip(shape).map(far).fold(0, u64::saturating_add)
    }

    /// Whether the values of a shape tensor are allowed.
    pub fn allows_values(&self, values: &[i64]) -> bool {
        self.values.as_ref().is_none_or(|[min, max]| {
            values.len() == min.len()
                && values
                    .iter()
                    .zip(min.iter().zip(max))
                    .all(|(v, (min, max))| (min..=max).contains(&v))
        })
    }

    /// `[1,3] to [8,3]`.
    pub fn text(&self) -> String {
        format!("{} to {}", shape_text(self.min.dims()), shape_text(self.max.dims()))
    }
}

impl Profile {
    pub fn range(&self, input: &str) -> Option<&Range> {
        self.ranges.iter().find(|(name, _)| name == input).map(|(_, range)| range)
    }

    /// The largest first dimension that all inputs allow; `None` without inputs.
    pub fn max_batch(&self, is_batched: impl Fn(&str) -> bool) -> Option<i64> {
        let batched = self.ranges.iter().filter(|(name, _)| is_batched(name));
        batched.filter_map(|(_, range)| range.max.dims().first().copied()).min()
    }
}

/// Position of the profile whose ranges, in the order of the shapes, allow all shapes, and whose
/// optimum is nearest.
pub fn nearest_profile<'a>(
    profiles: impl Iterator<Item = &'a [Range]>,
    shapes: &[TensorShape],
) -> Option<usize> {
    let fitting = profiles.enumerate().filter_map(|(at, ranges)| {
        let pairs = || ranges.iter().zip(shapes);
        pairs().all(|(range, shape)| range.allows(shape.dims())).then(|| {
            let distance = pairs().map(|(range, shape)| range.distance(shape.dims()));
            (distance.fold(0, u64::saturating_add), at)
        })
    });
    fitting.min().map(|(_, at)| at)
}

/// The profiles that an instance uses, from the names in its group: numbers of profiles, `0` if
/// there are none.
///
/// # Errors
/// A name that is not a number, or of no profile.
pub fn selected_profiles<'a>(
    names: impl Iterator<Item = &'a str>,
    available: usize,
) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for name in names {
        let index = name.trim().parse::<usize>().ok().filter(|index| *index < available);
        let index = index.ok_or_else(|| {
            format!(
                "the instance group names the optimisation profile '{name}'; the engine has {available}, numbered \
                 from 0"
            )
        })?;
        if !all.contains(&index) {
            all.push(index);
        }
    }
    if all.is_empty() {
        all.push(0);
    }
    Ok(all)
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
