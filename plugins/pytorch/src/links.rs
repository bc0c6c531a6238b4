//! Dynamic dimensions that have to be equal: the compiled model takes each size from one input and
//! reads the others by it, beyond their end if they are shorter.
//!
//! The code does not say which dimension follows which. A dimension that follows has the bounds of
//! the one that it follows, so its size must be that of one of those with these bounds.

use crate::source::CodeInput;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::types::shape_text;

/// Position of an input, and of its dimension.
type Place = (usize, usize);

#[derive(Debug, Default, PartialEq, Eq)]
pub struct SizeLinks {
    links: Vec<SizeLink>,
    /// Dimensions that follow others in a way that is not known, such as twice the size.
    pub unknown: Vec<Place>,
}

#[derive(Debug, PartialEq, Eq)]
struct SizeLink {
    follower: Place,
    leaders: Vec<Place>,
}

impl SizeLinks {
    pub fn new(inputs: &[CodeInput]) -> Self {
        let places = |leads: bool| {
            let dims = inputs.iter().enumerate().flat_map(|(input, own)| {
                own.dims.iter().enumerate().map(move |(at, dim)| ((input, at), dim))
            });
            dims.filter(move |(_, dim)| dim.size == -1 && dim.leads == leads)
        };
        let mut all = Self::default();
        for (follower, dim) in places(false) {
            let alike = places(true).filter(|(_, leader)| leader.bounds == dim.bounds);
            let leaders: Vec<Place> = alike.map(|(place, _)| place).collect();
            if leaders.is_empty() {
                all.unknown.push(follower);
            } else {
                all.links.push(SizeLink { follower, leaders });
            }
        }
        all
    }

    /// `shapes`: of all inputs; `name`: of an input.
    ///
    /// # Errors
    /// Names the inputs and their shapes.
    pub fn check<'a>(
        &self,
        shapes: &[Vec<i64>],
        name: impl Fn(usize) -> &'a str,
    ) -> Result<(), PluginFault> {
        let size = |(input, dim): Place| shapes.get(input).and_then(|shape| shape.get(dim));
        let fails = |link: &&SizeLink| {
            !link.leaders.iter().any(|leader| size(*leader) == size(link.follower))
        };
        let Some(link) = self.links.iter().find(fails) else { return Ok(()) };
        let (input, dim) = link.follower;
        let others: Vec<String> = link
            .leaders
            .iter()
            .map(|(input, dim)| {
                format!(
                    "dimension {dim} of '{}' of shape {}",
                    name(*input),
                    shape_text(&shapes[*input])
                )
            })
            .collect();
        Err(PluginFault::invalid(format!(
            "dimension {dim} of input '{}' of shape {} has another size than {}, which the compiled model takes for \
             equal",
            name(input),
            shape_text(&shapes[input]),
            others.join(" and ")
        )))
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
