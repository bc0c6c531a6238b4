//! What each operator of Caffe2 becomes in ONNX: the table of names, and a file per family of operators.

mod activation;
mod arithmetic;
mod convolution;
mod copy;
mod fill;
mod image;
mod layout;
mod logic;
mod matrix;
mod normalization;
mod pooling;
mod recurrent;
mod reduce;
mod select;
mod shape;
mod window;

use super::graph::{Graph, Value};
use super::operator::Operator;

/// Adds nodes to the graph and returns the operator's outputs. It may return fewer: the rest is not computed when a model is
/// served, and an error if it is used.
pub type Translate = fn(&mut Graph, &mut Operator<'_>) -> Outputs;

/// The outputs of an operator, or why it cannot be translated: a sentence about it.
pub type Outputs = Result<Vec<Value>, String>;

/// All operators, sorted by name.
pub const TABLE: &[(&str, Translate)] = &[
    ("Abs", activation::unary),
    ("Acos", activation::unary),
    ("Add", arithmetic::binary),
    ("AffineChannel", normalization::affine_channel),
    ("Alias", copy::identity),
    ("And", logic::boolean),
    ("ArgMax", select::arg_extreme),
    ("ArgMin", select::arg_extreme),
    ("Asin", activation::unary),
    ("Atan", activation::unary),
    ("AveragePool", pooling::average_pool),
    ("AveragePool1D", pooling::average_pool),
    ("AveragePool2D", pooling::average_pool),
    ("AveragePool3D", pooling::average_pool),
    ("BatchGather", select::gather),
    ("BatchMatMul", matrix::batch_mat_mul),
    ("Cast", copy::cast),
    ("Ceil", activation::unary),
    ("ChannelShuffle", image::channel_shuffle),
    ("Clip", arithmetic::clip),
    ("Concat", shape::concat),
    ("ConstantFill", fill::constant),
    ("Conv", convolution::conv),
    ("Conv1D", convolution::conv),
    ("Conv2D", convolution::conv),
    ("Conv3D", convolution::conv),
    ("ConvTranspose", convolution::conv_transpose),
    ("Copy", copy::identity),
    ("CopyCPUToGPU", copy::identity),
    ("CopyFromCPUInput", copy::identity),
    ("CopyGPUToCPU", copy::identity),
    ("CopyOnDeviceLike", copy::identity),
    ("Cos", activation::unary),
    ("Cosh", activation::unary),
    ("Cube", arithmetic::power_of_itself),
    ("DepthConcat", shape::concat),
    ("Div", arithmetic::binary),
    ("Dropout", copy::identity),
    ("EQ", logic::compare),
    ("Elu", activation::elu),
    ("EnsureCPUOutput", copy::identity),
    ("Erf", activation::unary),
    ("Exp", activation::unary),
    ("ExpandDims", shape::expand_dims),
    ("FC", matrix::fully_connected),
    ("FCTransposed", matrix::fully_connected),
    ("Flatten", shape::flatten),
    ("FlattenToVec", shape::flatten_to_vector),
    ("FloatToHalf", copy::convert),
    ("Floor", activation::unary),
    ("GE", logic::compare),
    ("GRUUnit", recurrent::gru_unit),
    ("GT", logic::compare),
    ("Gather", select::gather),
    ("Gelu", activation::gelu),
    ("GivenTensorBoolFill", fill::given),
    ("GivenTensorByteStringToUInt8Fill", fill::byte_string),
    ("GivenTensorDoubleFill", fill::given),
    ("GivenTensorFill", fill::given),
    ("GivenTensorInt16Fill", fill::given),
    ("GivenTensorInt64Fill", fill::given),
    ("GivenTensorIntFill", fill::given),
    ("GivenTensorStringFill", fill::strings),
    ("GroupNorm", normalization::group_norm),
    ("HalfToFloat", copy::convert),
    ("HardSigmoid", activation::hard_sigmoid),
    ("InstanceNorm", normalization::instance_norm),
    ("LE", logic::compare),
    ("LRN", normalization::lrn),
    ("LSTMUnit", recurrent::lstm_unit),
    ("LT", logic::compare),
    ("LayerNorm", normalization::layer_norm),
    ("LeakyRelu", activation::leaky_relu),
    ("Log", activation::unary),
    ("MatMul", matrix::mat_mul),
    ("Max", arithmetic::n_ary),
    ("MaxPool", pooling::max_pool),
    ("MaxPool1D", pooling::max_pool),
    ("MaxPool2D", pooling::max_pool),
    ("MaxPool3D", pooling::max_pool),
    ("Mean", arithmetic::n_ary),
    ("Min", arithmetic::n_ary),
    ("Mul", arithmetic::binary),
    ("NCHW2NHWC", layout::to_channels_last),
    ("NE", logic::compare),
    ("NHWC2NCHW", layout::to_channels_first),
    ("Negative", activation::unary),
    ("Normalize", normalization::normalize),
    ("NormalizeL1", normalization::normalize),
    ("Not", activation::unary),
    ("Or", logic::boolean),
    ("PRelu", activation::prelu),
    ("PadImage", image::pad),
    ("Pow", arithmetic::power),
    ("Reciprocal", activation::unary),
    ("ReduceBackMax", reduce::reduce_end),
    ("ReduceBackMean", reduce::reduce_end),
    ("ReduceBackSum", reduce::reduce_end),
    ("ReduceFrontMax", reduce::reduce_end),
    ("ReduceFrontMean", reduce::reduce_end),
    ("ReduceFrontSum", reduce::reduce_end),
    ("ReduceL1", reduce::reduce),
    ("ReduceL2", reduce::reduce),
    ("ReduceMax", reduce::reduce),
    ("ReduceMean", reduce::reduce),
    ("ReduceMin", reduce::reduce),
    ("ReduceSum", reduce::reduce),
    ("Relu", activation::unary),
    ("ReluN", activation::relu_n),
    ("Reshape", shape::reshape),
    ("ResizeNearest", image::resize_nearest),
    ("Rsqrt", activation::rsqrt),
    ("Scale", arithmetic::scale),
    ("Selu", activation::selu),
    ("Shape", shape::shape),
    ("Sigmoid", activation::unary),
    ("Sign", activation::unary),
    ("Sin", activation::unary),
    ("Sinh", activation::unary),
    ("Size", shape::size),
    ("Slice", select::slice),
    ("Softmax", activation::softmax),
    ("Softplus", activation::unary),
    ("Softsign", activation::unary),
    ("SpatialBN", normalization::spatial_bn),
    ("Split", shape::split),
    ("Sqr", arithmetic::power_of_itself),
    ("Sqrt", activation::unary),
    ("Squeeze", shape::squeeze),
    ("StopGradient", copy::identity),
    ("Sub", arithmetic::binary),
    ("Sum", arithmetic::n_ary),
    ("SumElements", reduce::sum_elements),
    ("SumSqrElements", reduce::sum_elements),
    ("Swish", activation::swish),
    ("Tan", activation::unary),
    ("Tanh", activation::unary),
    ("ThresholdedRelu", activation::thresholded_relu),
    ("Tile", shape::tile),
    ("TopK", select::top_k),
    ("Transpose", layout::transpose),
    ("UpsampleBilinear", image::upsample_bilinear),
    ("Where", logic::select),
    ("Xor", logic::boolean),
];

/// # Errors
/// The operator is not supported; the text is a sentence about it.
pub fn find(kind: &str) -> Result<Translate, String> {
    if let Ok(at) = TABLE.binary_search_by_key(&kind, |(name, _)| name) {
        return Ok(TABLE[at].1);
    }
    let random = ["GaussianFill", "MSRAFill", "UniformFill", "UniformIntFill", "XavierFill"];
    Err(if kind.starts_with("Int8") || kind.ends_with("DNNLOWP") {
        "quantised operators are not supported; use the net with floating-point weights".to_owned()
    } else if random.contains(&kind) {
        "it writes random numbers, so the file holds no trained weights".to_owned()
    } else if kind.ends_with("Gradient") {
        "operators for training are not supported".to_owned()
    } else {
        "the operator is not supported; plugins/caffe2/README.md lists the supported ones"
            .to_owned()
    })
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
