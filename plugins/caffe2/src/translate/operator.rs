//! An operator of a net: its arguments with their types checked, and its inputs as values of the
//! graph.

use super::graph::{GraphBuilder, GraphValue};
use super::tensor::ConstantTensor;
use crate::netdef::{Argument, OperatorDef};

pub struct Operator<'a> {
    pub def: &'a mut OperatorDef,
    pub inputs: Vec<GraphValue>,
}

/// Order of the dimensions of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageOrder {
    ChannelsFirst,
    ChannelsLast,
}

impl ImageOrder {
    /// Position of the channels in a tensor of `rank` dimensions.
    pub fn channel_axis(self, rank: usize) -> usize {
        match self {
            ImageOrder::ChannelsFirst => 1,
            ImageOrder::ChannelsLast => rank.saturating_sub(1),
        }
    }
}

impl Operator<'_> {
    pub fn kind(&self) -> &str {
        self.def.r#type()
    }

    pub fn input(&self, at: usize) -> Result<GraphValue, String> {
        self.inputs.get(at).copied().ok_or_else(|| {
            format!("it has {} inputs, at least {} are needed", self.inputs.len(), at + 1)
        })
    }

    pub fn n_outputs(&self) -> usize {
        self.def.output.len()
    }

    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.def.arg.iter().find(|arg| arg.name() == name)
    }

    /// Removes a list that may be large.
    pub fn take(&mut self, name: &str) -> Option<Argument> {
        let at = self.def.arg.iter().position(|arg| arg.name() == name)?;
        Some(self.def.arg.swap_remove(at))
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(arg) = self.argument(name) else { return Ok(None) };
        arg.i.map(Some).ok_or_else(|| format!("its argument '{name}' is not an integer"))
    }

    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, String> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    pub fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        Ok(self.int_or(name, default.into())? != 0)
    }

    pub fn float(&self, name: &str) -> Result<Option<f32>, String> {
        let Some(arg) = self.argument(name) else { return Ok(None) };
        arg.f
            .map(Some)
            .ok_or_else(|| format!("its argument '{name}' is not a floating-point number"))
    }

    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, String> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, String> {
        let Some(arg) = self.argument(name) else { return Ok(None) };
        let text = arg.s.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.map(Some).ok_or_else(|| format!("its argument '{name}' is not a text"))
    }

    /// A list of integers; an empty one counts as absent.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.argument(name).map(|arg| arg.ints.as_slice()).filter(|ints| !ints.is_empty())
    }

    pub fn order(&self) -> Result<ImageOrder, String> {
        match self.text("order")? {
            None | Some("NCHW") => Ok(ImageOrder::ChannelsFirst),
            Some("NHWC") => Ok(ImageOrder::ChannelsLast),
            Some(other) => Err(format!("its order '{other}' is neither NCHW nor NHWC")),
        }
    }

    /// An input that must be constant: integers.
    pub fn constant_ints(&self, graph: &GraphBuilder, at: usize) -> Result<Vec<i64>, String> {
        let known = graph.known_constant(self.input(at)?).and_then(ConstantTensor::as_integers);
        known.ok_or_else(|| {
            format!("{} is not a short list of integers from the initialization net", self.name(at))
        })
    }

    /// `its input 1 ('shape')`, for messages.
    pub fn name(&self, at: usize) -> String {
        format!("its input {at} ('{}')", self.def.input.get(at).map_or("", |name| name))
    }

    /// Number of dimensions of an input.
    pub fn rank(&self, graph: &GraphBuilder, at: usize) -> Result<usize, String> {
        let rank = graph.rank(self.input(at)?);
        rank.ok_or_else(|| format!("the number of dimensions of {} is not known", self.name(at)))
    }

    /// Refuses an argument that is set to anything but its default.
    pub fn only(&self, name: &str, default: i64) -> Result<(), String> {
        match self.int(name)? {
            Some(value) if value != default => {
                Err(format!("its argument '{name}' = {value} is not supported"))
            }
            _ => Ok(()),
        }
    }
}

/// An axis counted from the front; negative ones need the rank.
pub fn resolve_axis(axis: i64, rank: Option<usize>) -> Result<usize, String> {
    let counted = match (axis, rank) {
        (0.., None) => Some(axis),
        (0.., Some(rank)) => Some(axis).filter(|&axis| axis <= rank as i64),
        (_, Some(rank)) => Some(axis + rank as i64).filter(|&axis| axis >= 0),
        (_, None) => {
            return Err(format!(
                "axis {axis} counts from the end of an unknown number of dimensions"
            ));
        }
    };
    let counted = counted.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis <= 64);
    counted.ok_or_else(|| match rank {
        Some(rank) => format!("axis {axis} does not exist in {rank} dimensions"),
        None => format!("axis {axis} does not exist"),
    })
}
