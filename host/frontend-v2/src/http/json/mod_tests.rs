//! Comparison with serde_json for standard JSON, and tables for what goes beyond it.

use super::*;
use proptest::prelude::*;
use trtserver_base::error::Code;
use trtserver_base::ledger::MemoryTag;
use trtserver_request::DType;

/// Reads a whole text.
fn tree(value: JsonValue<'_>) -> serde_json::Value {
    match value {
        JsonValue::Null => serde_json::Value::Null,
        JsonValue::Bool(b) => b.into(),
        // serde_json's floats are sometimes off by one digit.
        JsonValue::Number(token) => match std::str::from_utf8(token).unwrap() {
            real if real.contains(['.', 'e', 'E']) => real.parse::<f64>().unwrap().into(),
            whole => serde_json::from_str(whole).unwrap_or("not finite".into()),
        },
        JsonValue::String(s) => String::from_utf8_lossy(&s).into_owned().into(),
        JsonValue::Array(a) => a.elements().map(|v| tree(v.unwrap())).collect(),
        JsonValue::Object(o) => o
            .members()
            .map(|member| member.unwrap())
            .map(|(k, v)| (String::from_utf8_lossy(&k).into_owned(), tree(v)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            proptest::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|m| m.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_on_valid_json(value in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
        prop_assert_eq!(tree(parse_json(&text.unwrap()).unwrap()), value);
    }

    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_json(&bytes).map(tree);
    }

    #[test]
    fn agrees_on_what_is_valid(text in r#"[\[\]{}:,"\\u0-9eE+. truefalsn\-]{0,24}"#) {
        let expected = serde_json::from_str::<serde_json::Value>(&text);
        let parsed = parse_json(text.as_bytes());
        prop_assert!(parsed.is_ok() == expected.is_ok(), "{:?} {:?}", parsed, expected);
    }

    #[test]
    fn strings_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
        let mut out = Vec::new();
        write::write_string(&mut out, &bytes);
        let JsonValue::String(got) = parse_json(&out).unwrap() else { panic!("no string") };
        prop_assert_eq!(got.as_ref(), bytes.as_slice());
    }

    #[test]
    fn floats_round_trip(bits in proptest::collection::vec(any::<u32>(), 1..20)) {
        let data: Vec<u8> = bits.iter().flat_map(|b| b.to_le_bytes()).collect();
        let mut out = Vec::new();
        encode::encode_data(&mut out, "O", DType::Fp32, &data).unwrap();
        let JsonValue::Array(array) = parse_json(&out).unwrap() else { panic!("no array") };
        let got = data::decode_data(array, DType::Fp32, bits.len(), "I", 1000, MemoryTag::default()).unwrap();
        for (want, got) in data.chunks(4).zip(got.chunks(4)) {
            let [want, got] = [want, got].map(|b| f32::from_le_bytes(b.try_into().unwrap()));
            prop_assert!(want == got || (want.is_nan() && got.is_nan()));
        }
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(parse_json(nested(100).as_bytes()).is_ok());
    let error = parse_json(nested(101).as_bytes()).unwrap_err();
    assert_eq!(error.code, Code::InvalidArg);
    assert_eq!(error.message, "JSON nesting depth exceeds maximum allowed limit (100)");
    assert!(parse_json("{\"a\":".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn members_are_bounded() {
    let many = format!("{{{}}}", vec!["\"a\":0"; 70_000].join(","));
    assert!(parse_json(many.as_bytes()).is_err());
}

#[test]
fn data_arrays_become_tensor_bytes() {
    let ok = |bytes: &[u8]| Ok(bytes.to_vec());
    let many = "Unable to parse 'data': Shape does not match true shape of 'data' field";
    let few = "Failed to parse 'data' field: shape does not match true shape";
    let kind = |k: &str| format!("Unable to parse 'data': attempt to access JSON non-{k} as {k}");
    type Row<'a> = (&'a str, DType, usize, Result<Vec<u8>, String>);
    let table: Vec<Row<'_>> = vec![
        ("[1,[2,[3]]]", DType::Uint8, 3, ok(&[1, 2, 3])),
        ("[256, 257]", DType::Uint8, 2, ok(&[0, 1])),
        ("[-1,300]", DType::Int8, 2, ok(&[255, 44])),
        ("[true,false]", DType::Bool, 2, ok(&[1, 0])),
        ("[1]", DType::Bool, 1, Err(kind("boolean"))),
        ("[1.0]", DType::Int32, 1, Err(kind("signed-integer"))),
        ("[-1]", DType::Uint32, 1, Err(kind("unsigned-integer"))),
        (
            "[\"a\"]",
            DType::Fp32,
            1,
            Err("Unable to parse 'data': attempt to access JSON non-number as double".into()),
        ),
        (
            "[null]",
            DType::String,
            1,
            Err("Unable to parse JSON bytes array: attempt to access JSON non-string as string".into()),
        ),
        // The number of strings is checked with the whole request.
        ("[\"\",\"\"]", DType::String, 1, ok(&[0; 8])),
        ("[-0]", DType::Uint8, 1, ok(&[0])),
        ("[-0]", DType::Fp32, 1, ok(&[0; 4])),
        ("[-0.0]", DType::Fp32, 1, ok(&[0, 0, 0, 0x80])),
        ("[{}]", DType::Int32, 1, Err(kind("signed-integer"))),
        ("[1,2]", DType::Int32, 3, Err(few.into())),
        ("[1,2,3,4]", DType::Int32, 3, Err(many.into())),
        ("[]", DType::Int32, 3, Err(few.into())),
        ("[1,2]", DType::Int32, 0, ok(&[])),
        ("[\"ab\",\"\"]", DType::String, 2, ok(&[2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0])),
        ("[1]", DType::Fp32, 1, ok(&1f32.to_le_bytes())),
        ("[-Inf]", DType::Fp64, 1, ok(&f64::NEG_INFINITY.to_le_bytes())),
        ("[Infinity]", DType::Fp32, 1, ok(&f32::INFINITY.to_le_bytes())),
        ("[1, -1e9]", DType::Fp16, 2, ok(&[0, 0x3c, 0, 0xfc])),
        ("[1.0, NaN]", DType::Bf16, 2, ok(&[0x80, 0x3f, 0xc0, 0x7f])),
        (
            "[1]",
            DType::Fp64,
            200,
            Err(
                "JSON input 'I' has a byte_size (1600 bytes) that exceeds the maximum allowed value of \
                 1000 bytes. Use --http-max-input-size to increase the limit."
                    .into(),
            ),
        ),
    ];
    for (text, dtype, elements, want) in table {
        let JsonValue::Array(array) = parse_json(text.as_bytes()).unwrap() else {
            panic!("no array")
        };
        let got = data::decode_data(array, dtype, elements, "I", 1000, MemoryTag::default());
        assert_eq!(got.map(|b| b.to_vec()).map_err(|e| e.message), want, "{text}");
    }
}

#[test]
fn fp32_data_is_written_with_the_fewest_digits() {
    let mut out = Vec::new();
    let floats = [0.1f32, 1.0, -0.0, 1e20, 1e-7, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let data: Vec<u8> = floats.iter().flat_map(|v| v.to_le_bytes()).collect();
    encode::encode_data(&mut out, "O", DType::Fp32, &data).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "[0.1,1.0,-0.0,100000000000000000000.0,1e-7,NaN,Infinity,-Infinity]"
    );
}

#[test]
fn long_arrays_stay_in_the_space_reserved_for_them() {
    let longest = |dtype| match dtype {
        DType::Bool => vec![0],
        DType::Int8 => i8::MIN.to_le_bytes().to_vec(),
        DType::Int16 => i16::MIN.to_le_bytes().to_vec(),
        DType::Int32 => i32::MIN.to_le_bytes().to_vec(),
        DType::Int64 => i64::MIN.to_le_bytes().to_vec(),
        DType::Fp16 => vec![1, 0x80],
        // -123000000000000000000.0
        DType::Bf16 => vec![0xd5, 0xe0],
        DType::Fp32 => (-1.234_567_9e20f32).to_le_bytes().to_vec(),
        DType::Fp64 => (-0.000_001_234_567_890_123_456_7f64).to_le_bytes().to_vec(),
        _ => vec![0xff; dtype.size().unwrap()],
    };
    use DType::*;
    for dtype in
        [Bool, Uint8, Int8, Uint16, Int16, Uint32, Int32, Uint64, Int64, Fp16, Bf16, Fp32, Fp64]
    {
        for elements in [0, 1, 1000] {
            let data = longest(dtype).repeat(elements);
            let mut out = Vec::with_capacity(encode::max_text(dtype, data.len()));
            let before = out.capacity();
            encode::encode_data(&mut out, "O", dtype, &data).unwrap();
            assert_eq!(out.capacity(), before, "{dtype:?} {elements}");
            let JsonValue::Array(array) = parse_json(&out).unwrap() else { panic!("no array") };
            let tag = MemoryTag::default();
            let got = data::decode_data(array, dtype, elements, "I", 100_000, tag).unwrap();
            assert_eq!(got, data, "{dtype:?} {elements}");
        }
    }
}

#[test]
fn strings_that_are_not_utf8_are_refused() {
    let strings = |texts: &[&[u8]]| {
        let mut data = Vec::new();
        texts.iter().for_each(|text| trtserver_request::strings::push_string(&mut data, text));
        let mut out = Vec::new();
        encode::encode_data(&mut out, "O", DType::String, &data)
            .map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(strings(&["é\n".as_bytes(), b""]).unwrap(), r#"["é\n",""]"#);
    let refused = strings(&[b"a", b"b\xff"]).unwrap_err();
    assert_eq!(
        refused.message,
        "output 'O': element 1 is not UTF-8 and cannot be sent via JSON. Please use the binary data format for output"
    );
}

/// Texts and offsets of Triton's parser.
#[test]
fn syntax_errors_have_texts_and_offsets_of_triton() {
    for (text, want) in [
        (&br#"{"a":01}"#[..], "Missing a comma or '}' after an object member. at 6"),
        (b"[1 2]", "Missing a comma or ']' after an array element. at 3"),
        (b"[1.]", "Miss fraction part in number. at 3"),
        (b"[1e]", "Miss exponent in number. at 3"),
        (b"[1e999]", "Number too big to be stored in double. at 1"),
        (
            &[&b"[1"[..], &[b'0'; 250], b"e99]"].concat(),
            "Number too big to be stored in double. at 1",
        ),
        (b"[tru]", "Invalid value. at 4"),
        (b"[nan]", "Invalid value. at 2"),
        (b"[Infinit]", "Invalid value. at 8"),
        (b"[-]", "Invalid value. at 2"),
        (br#"["\q"]"#, "Invalid escape character in string. at 2"),
        (b"[\"\t\"]", "Invalid escape character in string. at 2"),
        (br#"["\u12"]"#, "Incorrect hex digit after \\u escape in string. at 2"),
        (br#"["\ud800\u0041"]"#, "The surrogate pair in string is invalid. at 2"),
        (b"[\"a", "Missing a closing quotation mark in string. at 3"),
        (b"{} x", "The document root must not be followed by other values. at 3"),
    ] {
        let error = parse_json(text).unwrap_err();
        let want = format!("failed to parse the request JSON buffer: {want}");
        assert_eq!((error.code, error.message), (Code::Internal, want));
    }
    for text in [&b"\xef\xbb\xbf{}"[..], b"{}\0\xff", b"[1e308,NaN,-Inf,Infinity]"] {
        assert!(parse_json(text).is_ok(), "{text:?}");
    }
}
