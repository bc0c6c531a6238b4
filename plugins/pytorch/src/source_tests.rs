//! Generated code: the lines that are read, as torch 2.9 writes them.

use super::*;
use trtserver_plugin_api::abi::types::dtype;

const CODE: &str = r#"
    ConstantHandle arg2_1 = ConstantHandle(input_handles[0]);
    int32_t arg2_1_expected_dtype = aoti_torch_dtype_int64();
    if (arg2_1_expected_dtype != arg2_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dtype, "
           << "expected: " << arg2_1_expected_dtype << "(at::kLong), "
           << "but got: " << arg2_1_dtype << "\n";
    if (arg2_1_size[0] < 2) {
        ss << "input_handles[0]: dim value is too small at 0, "
           << "expected it to be >= 2, " << "but got: "
        ss << "input_handles[0]: dim value is too large at 0, "
           << "expected to be <= 64, " << "but got: "
        ss << "input_handles[0]: dim value is too small at 1, "
           << "expected it to be >= 16, " << "but got: "
        ss << "input_handles[0]: dim value is too large at 1, "
           << "expected to be <= 512, " << "but got: "
        ss << "input_handles[0]: unmatched stride value at 1, "
           << "expected: 1, " << "but got: " << arg2_1_stride[1]
        ss << "input_handles[0]: unmatched device type, "
        << "expected: " << arg2_1_expected_device_type << "0(cpu), "
        ss << "input_handles[1]: unmatched dtype, "
           << "expected: " << arg3_1_expected_dtype << "(at::kFloat), "
        ss << "input_handles[2]: unmatched dtype, "
           << "expected: " << arg13_1_expected_dtype << "(at::kComplexFloat), "
        ss << "input_handles[2]: dim value is too small at 0, "
           << "expected it to be >= 2, " << "but got: "
        ss << "input_handles[2]: unmatched dim value at 1, "
           << "expected: 8, " << "but got: " << arg13_1_size[1]
    inputs_info_[0].name = "arg2_1";
    inputs_info_[1].name = "arg3_1";
    inputs_info_[2].name = "arg13_1";
    int64_t s23 = arg2_1_size[0];
    int64_t s27 = arg2_1_size[1];
    cpp_fused_0((const int64_t*)(arg2_1.data_ptr()), (float*)(arg3_1.data_ptr()), s23);
"#;

fn dim(size: i64, lower: i64, upper: i64, leads: bool, stride: Option<i64>) -> CodeDim {
    CodeDim { size, bounds: SizeBounds { lower, upper }, leads, stride }
}

#[test]
fn inputs_are_read_from_the_code() {
    let inputs = read_inputs(CODE, 3).expect("three inputs");
    let expected = [
        CodeInput {
            element: Element::Known(dtype::INT64),
            // The bound 2 stands for none.
            dims: vec![dim(-1, 0, 64, true, None), dim(-1, 16, 512, true, Some(1))],
            written: false,
        },
        CodeInput { element: Element::Known(dtype::FP32), dims: Vec::new(), written: true },
        CodeInput {
            element: Element::Foreign("ComplexFloat".to_owned()),
            dims: vec![dim(-1, 0, i64::MAX, false, None), dim(8, 0, i64::MAX, false, None)],
            written: false,
        },
    ];
    assert_eq!(inputs, expected);
}

#[test]
fn code_that_says_less_is_not_used() {
    assert_eq!(read_inputs(CODE, 4), None);
    assert_eq!(read_inputs(&CODE.replace("(at::kLong)", ""), 3), None);
    assert_eq!(read_inputs(&CODE.replace("inputs_info_[1]", "x"), 3), None);
    assert_eq!(read_inputs("", 1), None);
    assert_eq!(read_inputs("", 0), Some(Vec::new()));
    // A dimension beyond what any tensor has.
    let far = CODE.replace("too small at 1,", "too small at 4000000000,");
    assert_eq!(read_inputs(&far, 3).map(|inputs| inputs[0].dims.len()), Some(2));
}

#[test]
fn writing_is_told_from_reading() {
    for (line, written) in [
        ("f((const float*)(a.data_ptr()), (float*)(buf.data_ptr()));", false),
        ("f((const float*)(a.data_ptr()), (float*)(a.data_ptr()));", true),
        ("CHECK(aoti_torch_copy_(a, buf0, 0));", true),
        ("CHECK(aoti_torch_cpu_addmm_out(a, buf0, b));", true),
        ("CHECK(aoti_torch_cpu_index_put(a, b));", true),
        ("CHECK(aoti_torch_cpu_convolution(a, b, &out));", false),
        ("CHECK(aoti_torch_cpu_addmm_out(buf0, a, b));", false),
        ("auto x = aoti_torch_copy_(aa, b);", false),
    ] {
        assert_eq!(writes_to(line, "a"), written, "{line}");
    }
}

#[test]
fn inputs_have_to_be_contiguous() {
    let input = |dims: &[CodeDim]| CodeInput {
        element: Element::Unknown,
        dims: dims.to_vec(),
        written: false,
    };
    let fixed = |size, stride| dim(size, 0, i64::MAX, false, Some(stride));
    let dynamic = |stride| dim(-1, 0, i64::MAX, true, stride);
    for (dims, fault) in [
        (vec![fixed(2, 12), fixed(3, 4), fixed(4, 1)], None),
        (vec![dynamic(Some(12)), fixed(3, 4), fixed(4, 1)], None),
        (vec![dynamic(None), dynamic(Some(4)), fixed(4, 1)], None),
        // A dimension of 1 has any stride.
        (vec![fixed(1, 99), fixed(4, 1)], None),
        // Pictures with the channels last.
        (vec![fixed(2, 60), fixed(3, 1), fixed(20, 3)], Some("stride of 3 in dimension 2")),
        (vec![dynamic(Some(8)), dynamic(Some(1))], Some("stride of 8 in dimension 0")),
    ] {
        let found = input(&dims).expect_contiguous().err();
        match fault {
            None => assert_eq!(found, None, "{dims:?}"),
            Some(part) => assert!(found.expect("a fault").contains(part), "{dims:?}"),
        }
    }
}
