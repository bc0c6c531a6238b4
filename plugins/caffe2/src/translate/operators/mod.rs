//! What each operator of Caffe2 becomes in ONNX: the table of names, and a file per family of
//! operators.

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

use super::graph::{GraphBuilder, GraphValue};
use super::operator::Operator;

/// Adds nodes to the graph and returns the operator's outputs. It may return fewer: the rest is not
/// computed when a model is served, and an error if it is used.
pub type Translate = fn(&mut GraphBuilder, &mut Operator<'_>) -> Outputs;

/// The outputs of an operator, or why it cannot be translated: a sentence about it.
pub type Outputs = Result<Vec<GraphValue>, String>;

/// All operators, sorted by name.
pub const TABLE: &[(&str, Translate)] = &[
    ("Abs", activation::translate_unary),
    ("Acos", activation::translate_unary),
    ("Add", arithmetic::translate_binary),
    ("AffineChannel", normalization::affine_channel),
    ("Alias", copy::translate_identity),
    ("And", logic::translate_boolean),
    ("ArgMax", select::arg_extreme),
    ("ArgMin", select::arg_extreme),
    ("Asin", activation::translate_unary),
    ("Atan", activation::translate_unary),
    ("AveragePool", pooling::average_pool),
    ("AveragePool1D", pooling::average_pool),
    ("AveragePool2D", pooling::average_pool),
    ("AveragePool3D", pooling::average_pool),
    ("BatchGather", select::translate_gather),
    ("BatchMatMul", matrix::batch_mat_mul),
    ("Cast", copy::translate_cast),
    ("Ceil", activation::translate_unary),
    ("ChannelShuffle", image::channel_shuffle),
    ("Clip", arithmetic::translate_clip),
    ("Concat", shape::translate_concat),
    ("ConstantFill", fill::translate_constant),
    ("Conv", convolution::translate_conv),
    ("Conv1D", convolution::translate_conv),
    ("Conv2D", convolution::translate_conv),
    ("Conv3D", convolution::translate_conv),
    ("ConvTranspose", convolution::conv_transpose),
    ("Copy", copy::translate_identity),
    ("CopyCPUToGPU", copy::translate_identity),
    ("CopyFromCPUInput", copy::translate_identity),
    ("CopyGPUToCPU", copy::translate_identity),
    ("CopyOnDeviceLike", copy::translate_identity),
    ("Cos", activation::translate_unary),
    ("Cosh", activation::translate_unary),
    ("Cube", arithmetic::power_of_itself),
    ("DepthConcat", shape::translate_concat),
    ("Div", arithmetic::translate_binary),
    ("Dropout", copy::translate_identity),
    ("EQ", logic::translate_compare),
    ("Elu", activation::translate_elu),
    ("EnsureCPUOutput", copy::translate_identity),
    ("Erf", activation::translate_unary),
    ("Exp", activation::translate_unary),
    ("ExpandDims", shape::expand_dims),
    ("FC", matrix::fully_connected),
    ("FCTransposed", matrix::fully_connected),
    ("Flatten", shape::translate_flatten),
    ("FlattenToVec", shape::flatten_to_vector),
    ("FloatToHalf", copy::translate_convert),
    ("Floor", activation::translate_unary),
    ("GE", logic::translate_compare),
    ("GRUUnit", recurrent::gru_unit),
    ("GT", logic::translate_compare),
    ("Gather", select::translate_gather),
    ("Gelu", activation::translate_gelu),
    ("GivenTensorBoolFill", fill::translate_given),
    ("GivenTensorByteStringToUInt8Fill", fill::byte_string),
    ("GivenTensorDoubleFill", fill::translate_given),
    ("GivenTensorFill", fill::translate_given),
    ("GivenTensorInt16Fill", fill::translate_given),
    ("GivenTensorInt64Fill", fill::translate_given),
    ("GivenTensorIntFill", fill::translate_given),
    ("GivenTensorStringFill", fill::translate_strings),
    ("GroupNorm", normalization::group_norm),
    ("HalfToFloat", copy::translate_convert),
    ("HardSigmoid", activation::hard_sigmoid),
    ("InstanceNorm", normalization::instance_norm),
    ("LE", logic::translate_compare),
    ("LRN", normalization::translate_lrn),
    ("LSTMUnit", recurrent::lstm_unit),
    ("LT", logic::translate_compare),
    ("LayerNorm", normalization::layer_norm),
    ("LeakyRelu", activation::leaky_relu),
    ("Log", activation::translate_unary),
    ("MatMul", matrix::mat_mul),
    ("Max", arithmetic::n_ary),
    ("MaxPool", pooling::max_pool),
    ("MaxPool1D", pooling::max_pool),
    ("MaxPool2D", pooling::max_pool),
    ("MaxPool3D", pooling::max_pool),
    ("Mean", arithmetic::n_ary),
    ("Min", arithmetic::n_ary),
    ("Mul", arithmetic::translate_binary),
    ("NCHW2NHWC", layout::to_channels_last),
    ("NE", logic::translate_compare),
    ("NHWC2NCHW", layout::to_channels_first),
    ("Negative", activation::translate_unary),
    ("Normalize", normalization::translate_normalize),
    ("NormalizeL1", normalization::translate_normalize),
    ("Not", activation::translate_unary),
    ("Or", logic::translate_boolean),
    ("PRelu", activation::translate_prelu),
    ("PadImage", image::translate_pad),
    ("Pow", arithmetic::translate_power),
    ("Reciprocal", activation::translate_unary),
    ("ReduceBackMax", reduce::reduce_end),
    ("ReduceBackMean", reduce::reduce_end),
    ("ReduceBackSum", reduce::reduce_end),
    ("ReduceFrontMax", reduce::reduce_end),
    ("ReduceFrontMean", reduce::reduce_end),
    ("ReduceFrontSum", reduce::reduce_end),
    ("ReduceL1", reduce::translate_reduce),
    ("ReduceL2", reduce::translate_reduce),
    ("ReduceMax", reduce::translate_reduce),
    ("ReduceMean", reduce::translate_reduce),
    ("ReduceMin", reduce::translate_reduce),
    ("ReduceSum", reduce::translate_reduce),
    ("Relu", activation::translate_unary),
    ("ReluN", activation::relu_n),
    ("Reshape", shape::translate_reshape),
    ("ResizeNearest", image::resize_nearest),
    ("Rsqrt", activation::translate_rsqrt),
    ("Scale", arithmetic::translate_scale),
    ("Selu", activation::translate_selu),
    ("Shape", shape::translate_shape),
    ("Sigmoid", activation::translate_unary),
    ("Sign", activation::translate_unary),
    ("Sin", activation::translate_unary),
    ("Sinh", activation::translate_unary),
    ("Size", shape::translate_size),
    ("Slice", select::translate_slice),
    ("Softmax", activation::translate_softmax),
    ("Softplus", activation::translate_unary),
    ("Softsign", activation::translate_unary),
    ("SpatialBN", normalization::spatial_bn),
    ("Split", shape::translate_split),
    ("Sqr", arithmetic::power_of_itself),
    ("Sqrt", activation::translate_unary),
    ("Squeeze", shape::translate_squeeze),
    ("StopGradient", copy::translate_identity),
    ("Sub", arithmetic::translate_binary),
    ("Sum", arithmetic::n_ary),
    ("SumElements", reduce::sum_elements),
    ("SumSqrElements", reduce::sum_elements),
    ("Swish", activation::translate_swish),
    ("Tan", activation::translate_unary),
    ("Tanh", activation::translate_unary),
    ("ThresholdedRelu", activation::thresholded_relu),
    ("Tile", shape::translate_tile),
    ("TopK", select::top_k),
    ("Transpose", layout::translate_transpose),
    ("UpsampleBilinear", image::upsample_bilinear),
    ("Where", logic::translate_select),
    ("Xor", logic::translate_boolean),
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
