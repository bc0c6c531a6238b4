//! Arguments of convolution and pooling: kernel, stride, dilation and padding, each in several
//! spellings.

use crate::onnx::Attribute;
use crate::translate::operator::Operator;

/// How the padding was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// By numbers.
    Explicit,
    /// `legacy_pad`: none.
    Valid,
    /// `legacy_pad`: such that the output has the size of the input, divided by the stride.
    Same,
    /// `legacy_pad`: the size of the output is rounded up, as Caffe did.
    RoundedUp,
}

#[derive(Debug)]
pub struct Window {
    pub kernel: Vec<i64>,
    pub stride: Vec<i64>,
    pub dilation: Vec<i64>,
    /// At the front of each dimension, then at the back of each.
    pub pads: Vec<i64>,
    pub padding: Padding,
}

impl Window {
    pub fn from_operator(op: &Operator<'_>) -> Result<Self, String> {
        let kernel = window_sizes(op, "kernel", ["kernel_h", "kernel_w"], None)?;
        let kernel = kernel.ok_or("it has no kernel size")?;
        let n = kernel.len();
        let stride = window_sizes(op, "stride", ["stride_h", "stride_w"], Some(n))?;
        let dilation = window_sizes(op, "dilation", ["dilation_h", "dilation_w"], Some(n))?;
        let padding = match op.int_or("legacy_pad", 0)? {
            0 => Padding::Explicit,
            1 => Padding::Valid,
            2 => Padding::Same,
            3 => Padding::RoundedUp,
            other => return Err(format!("its argument 'legacy_pad' = {other} is not supported")),
        };
        let pads = window_pads(op, n)?;
        let window = Self {
            stride: stride.unwrap_or_else(|| vec![1; n]),
            dilation: dilation.unwrap_or_else(|| vec![1; n]),
            kernel,
            pads,
            padding,
        };
        for (name, sizes, least) in [
            ("kernel", &window.kernel, 1),
            ("stride", &window.stride, 1),
            ("dilation", &window.dilation, 1),
            ("pad", &window.pads, 0),
        ] {
            if let Some(wrong) = sizes.iter().find(|&&size| size < least) {
                return Err(format!("its {name} has a size of {wrong}"));
            }
        }
        Ok(window)
    }

    /// Dimensions of an image: batch and channels too.
    pub fn rank(&self) -> usize {
        self.kernel.len() + 2
    }

    /// The attributes that Conv and the pooling operators share, except dilations.
    pub fn attributes(&self) -> Vec<Attribute> {
        let padding = match self.padding {
            Padding::Explicit | Padding::RoundedUp => Attribute::ints("pads", &self.pads),
            Padding::Valid => Attribute::text("auto_pad", "VALID"),
            Padding::Same => Attribute::text("auto_pad", "SAME_UPPER"),
        };
        vec![
            Attribute::ints("kernel_shape", &self.kernel),
            Attribute::ints("strides", &self.stride),
            padding,
        ]
    }
}

/// One size for two dimensions, a list, or a size for the height and one for the width. `n` is the
/// number of dimensions if it is known.
fn window_sizes(
    op: &Operator<'_>,
    name: &str,
    both: [&str; 2],
    n: Option<usize>,
) -> Result<Option<Vec<i64>>, String> {
    if let Some(one) = op.int(name)? {
        return Ok(Some(vec![one; n.unwrap_or(2)]));
    }
    let list = format!("{name}s");
    let sizes = match op.ints(&list) {
        Some(sizes) => sizes.to_vec(),
        None => match (op.int(both[0])?, op.int(both[1])?) {
            (Some(height), Some(width)) => vec![height, width],
            _ => return Ok(None),
        },
    };
    match n {
        Some(n) if sizes.len() != n => {
            Err(format!("its {name} has {} sizes, its kernel {n}", sizes.len()))
        }
        _ => Ok(Some(sizes)),
    }
}

/// `pad`, `pads`, or the four sides of a plane. `n` is the number of spatial dimensions.
pub fn window_pads(op: &Operator<'_>, n: usize) -> Result<Vec<i64>, String> {
    if let Some(one) = op.int("pad")? {
        return Ok(vec![one; 2 * n]);
    }
    let pads = match op.ints("pads") {
        Some(pads) => pads.to_vec(),
        None => {
            let sides = ["pad_t", "pad_l", "pad_b", "pad_r"];
            let sides: Vec<Option<i64>> =
                sides.iter().map(|side| op.int(side)).collect::<Result<_, _>>()?;
            if sides.iter().all(Option::is_none) {
                return Ok(vec![0; 2 * n]);
            }
            sides.into_iter().map(|side| side.unwrap_or(0)).collect()
        }
    };
    if pads.len() == 2 * n {
        return Ok(pads);
    }
    Err(format!("it has {} pads, {} are needed", pads.len(), 2 * n))
}
