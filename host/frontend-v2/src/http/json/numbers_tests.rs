//! Unit tests of `numbers.rs`. The reference is `data.rs`, which reads value by value and converts
//! with the standard library.

use super::*;
use crate::http::json::data::one_by_one;
use crate::http::json::{JsonValue, parse_json};
use proptest::prelude::*;

const NUMBERS: [DType; 13] = [
    DType::Bool,
    DType::Uint8,
    DType::Uint16,
    DType::Uint32,
    DType::Uint64,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::Fp16,
    DType::Fp32,
    DType::Fp64,
    DType::Bf16,
];

/// The same array by the reference.
fn reference(text: &[u8], dtype: DType, elements: usize) -> Option<Vec<u8>> {
    let Ok(JsonValue::Array(array)) = parse_json(text) else { return None };
    let mut out = vec![0; elements * dtype.size()?];
    one_by_one(&array, dtype, elements, &mut out).ok().map(|()| out)
}

fn fast(text: &[u8], dtype: DType, elements: usize) -> Option<(Vec<u8>, usize)> {
    let mut out = vec![0xaa; elements * dtype.size()?];
    read_numbers(text, 100, dtype, &mut out).map(|length| (out, length))
}

/// Whatever is read is what the reference reads.
fn agrees(text: &str) {
    for dtype in NUMBERS {
        for elements in 0..6 {
            if let Some((bytes, length)) = fast(text.as_bytes(), dtype, elements) {
                let want = reference(&text.as_bytes()[..length], dtype, elements);
                assert_eq!(Some(bytes), want, "{dtype:?} {text}");
            }
        }
    }
}

/// Besides, a well-formed array is read.
fn agrees_and_reads(text: &str, dtype: DType, elements: usize) {
    let want = reference(text.as_bytes(), dtype, elements);
    assert!(want.is_some(), "{dtype:?} {text}");
    let got = fast(text.as_bytes(), dtype, elements);
    assert_eq!(got, want.map(|bytes| (bytes, text.len())), "{dtype:?} {text}");
}

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,22}",
        "-?[0-9]{1,3}",
        r"-?[0-9]{0,3}\.[0-9]{0,25}",
        r"-?[0-9]{1,25}(\.[0-9]{1,5})?[eE][+-]?[0-9]{0,4}",
        any::<f64>().prop_map(|v| format!("{v:?}")),
        any::<f32>().prop_map(|v| format!("{v:e}")),
        any::<u64>().prop_map(|v| v.to_string()),
        any::<i64>().prop_map(|v| v.to_string()),
        "-?(NaN|Infinity|Inf|Infi|nan)",
        "true|false|null|\"1\"|\\{\\}|",
        r"[0-9eE+.\-NaInfty]{1,8}",
    ]
}

/// Tokens with brackets, commas and white space between them.
fn arrays() -> impl Strategy<Value = String> {
    let between = "[ \n]{0,2}(,|\\],\\[|,\\[|\\],|\\]\\[|)[ \t]{0,2}";
    let more = proptest::collection::vec((between, token()), 0..4);
    (r"\[{1,2}", token(), more, r"[ \r]?\]{1,2}.?").prop_map(|(open, first, more, close)| {
        let more: String = more.into_iter().map(|(between, token)| between + &token).collect();
        open + &first + &more + &close
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_read_is_what_the_standard_library_reads(text in arrays()) {
        agrees(&text);
    }

    #[test]
    fn random_texts_agree(text in r"\[[\[\], 0-9eE+.\-]{0,20}\]") {
        agrees(&text);
    }

    #[test]
    fn finite_numbers_are_read_in_one_pass(values: [f64; 3], narrow: [f32; 2]) {
        let [a, b, c] = values.map(|v| if v.is_finite() { v } else { 0.5 });
        let [d, e] = narrow.map(|v| if v.is_finite() { v } else { 0.5 });
        let text = format!("[{a:?},{b:e} , {c},\n{d:?}, {:?}]", f64::from(e));
        agrees_and_reads(&text, DType::Fp64, 5);
        agrees_and_reads(&text, DType::Fp32, 5);
    }

    #[test]
    fn integers_are_read_in_one_pass(signed: [i64; 2], unsigned: [u64; 2]) {
        agrees_and_reads(&format!("[{}, {},-0]", signed[0], signed[1]), DType::Int64, 3);
        agrees_and_reads(&format!("[{}, {},-0]", signed[0], signed[1]), DType::Int8, 3);
        agrees_and_reads(&format!("[{}, {},-0]", unsigned[0], unsigned[1]), DType::Uint64, 3);
        agrees_and_reads(&format!("[{},{}]", unsigned[0], signed[0]), DType::Fp32, 2);
    }
}

#[test]
fn well_formed_arrays_are_read_in_one_pass() {
    for (text, dtype, elements) in [
        ("[[1,2],[3],[]]", DType::Fp32, 3),
        ("[[[]], [ ], -1]", DType::Int8, 1),
        (" [1]".trim_start(), DType::Uint8, 1),
        ("[NaN, -NaN,Infinity,-Inf , Inf,-Infinity]", DType::Fp32, 6),
        ("[-0,-0.0,0e5,-0E-9, 1e-400, 4.9e-324]", DType::Fp64, 6),
        ("[true,false]", DType::Bool, 2),
        ("[18446744073709551615]", DType::Uint64, 1),
        ("[-9223372036854775808]", DType::Int64, 1),
        ("[7.038531e-26,16777217,0.1,1e-46]", DType::Fp32, 4),
        ("[65520,1e-8]", DType::Fp16, 2),
    ] {
        agrees_and_reads(text, dtype, elements);
    }
}

#[test]
fn all_else_is_not_read() {
    for (text, dtype) in [
        ("[01]", DType::Fp32),
        ("[1.]", DType::Fp32),
        ("[1.e5]", DType::Fp32),
        ("[.5]", DType::Fp32),
        ("[-.5]", DType::Fp32),
        ("[+1]", DType::Fp32),
        ("[1e]", DType::Fp32),
        ("[1e400]", DType::Fp64),
        ("[nan]", DType::Fp32),
        ("[Infi]", DType::Fp32),
        ("[1x]", DType::Int8),
        ("[1", DType::Int8),
        ("[1,]", DType::Int8),
        ("[,1]", DType::Int8),
        ("[1 2]", DType::Int8),
        ("[1][", DType::Int16),
        ("[1.0]", DType::Int32),
        ("[-1]", DType::Uint32),
        ("[18446744073709551616]", DType::Uint64),
        ("[9223372036854775808]", DType::Int64),
        ("[1]", DType::Bool),
        ("[true]", DType::Fp32),
        ("[\"1\"]", DType::Fp32),
        ("1", DType::Fp32),
        ("", DType::Fp32),
    ] {
        let elements = if text == "[1][" { 2 } else { 1 };
        assert_eq!(fast(text.as_bytes(), dtype, elements), None, "{text}");
    }
    let nested = format!("{}1{}", "[".repeat(4), "]".repeat(4));
    assert_eq!(read_numbers(nested.as_bytes(), 3, DType::Int8, &mut [0]), None);
    assert_eq!(read_numbers(nested.as_bytes(), 4, DType::Int8, &mut [0]), Some(9));
}
