//! Unit tests of `inputs.rs`: what the first walk reads is what is read afterwards, from the text.

use super::*;
use crate::http::json::{data, pick_members};
use proptest::prelude::*;
use trtserver_base::ledger::MemoryTag;
use trtserver_request::{ModelSignature, TensorSpec};

const LIMIT: u64 = 1000;
const NAMES: [&str; 2] = ["inputs", "id"];

fn signature(dtypes: &[DType]) -> ModelSignature {
    let spec = |(i, dtype): (usize, &DType)| TensorSpec::new(&format!("I{i}"), *dtype, &[-1]);
    ModelSignature {
        inputs: dtypes.iter().enumerate().map(spec).collect(),
        ..ModelSignature::default()
    }
}

fn shown(members: &PickedMembers<'_, 5>) -> String {
    format!("{members:?}")
}

/// What an input's data is read as, by the members of the input.
fn dtype_and_elements(members: &PickedMembers<'_, 5>) -> Option<(DType, usize)> {
    let Some(JsonValue::String(dtype)) = &members[DATATYPE] else { return None };
    let Some(JsonValue::Array(shape)) = &members[SHAPE] else { return None };
    let shape: Option<Shape> =
        shape.elements().map(|d| i64::try_from(as_unsigned(&d.ok()?)?).ok()).collect();
    let dtype = DType::from_v2_name(std::str::from_utf8(dtype).ok()?)?;
    Some((dtype, element_count(&shape?)?))
}

/// Compares a request read at once with the same request read afterwards. Returns for each input
/// whether the first walk converted it.
fn compare(text: &str, dtypes: &[DType]) -> Result<Vec<bool>> {
    let signature = signature(dtypes);
    let mut tensors = JsonTensors::new(&signature, LIMIT);
    let at_once = pick_with_inputs(text.as_bytes(), NAMES, &mut tensors);
    let afterwards = pick_members(text.as_bytes(), NAMES);
    let ([inputs, id], read, [want, want_id]) = match (at_once, afterwards) {
        (Ok((got, read)), Ok(want)) => (got, read, want),
        (Err(got), Err(want)) => {
            assert_eq!((got.code, &got.message), (want.code, &want.message), "{text}");
            return Err(got);
        }
        (got, want) => panic!("{text}: {:?} {:?}", got.map(|_| ()), want.map(|_| ())),
    };
    assert_eq!(format!("{inputs:?} {id:?}"), format!("{want:?} {want_id:?}"), "{text}");
    let Some(JsonValue::Array(array)) = inputs else { return Ok(Vec::new()) };
    let got: Vec<_> = read.each(array).map(|input| input.unwrap()).collect();
    let want: Vec<_> = array.picks(MEMBERS).map(|input| input.unwrap()).collect();
    assert_eq!(
        got.iter().map(shown).collect::<Vec<_>>(),
        want.iter().map(shown).collect::<Vec<_>>()
    );
    let converted = got.iter().map(|input| {
        let Some(JsonValue::Array(values)) = input[DATA] else { return false };
        let Some((dtype, elements)) = dtype_and_elements(input) else { return false };
        let Some(got) = tensors.take(values, dtype, elements) else { return false };
        let tag = MemoryTag::default();
        let want = data::decode_data(values, dtype, elements, "I", LIMIT, tag);
        assert_eq!(got, want.unwrap_or_else(|e| panic!("{text}: {}", e.message)), "{text}");
        true
    });
    Ok(converted.collect())
}

fn input() -> impl Strategy<Value = String> {
    let data = prop_oneof![
        r"\[( ?-?[0-9]{1,3}(\.[0-9]{1,3})? ?,){0,5}[0-9]\]",
        r"\[\[[0-9],[0-9]\],\[[0-9],[0-9]?\]\]",
        r"\[(NaN|true|[0-9]|-0|1e400|01),1\]",
        r#"\["a","b"\]|\[\]|7|\{"a":\[1\]\}"#,
    ];
    let shape = prop_oneof![
        r"\[[0-6]\]",
        r"\[2,[23]\]",
        r"\[\]|\[-1\]|\[1\.5\]|\[99999999999999999999\]|5"
    ];
    let dtype = r#""(FP32|FP64|INT8|UINT64|BOOL|BYTES|FP16|X)"|7"#;
    let member = |name: &'static str| move |value: String| format!("\"{name}\":{value}");
    let members = (
        data.prop_map(member("data")),
        shape.prop_map(member("shape")),
        dtype.prop_map(member("datatype")),
    );
    (members, "\"name\": ?\"[AB]\"", 0..24usize, 0..5usize).prop_map(
        |((a, b, c), d, order, count)| {
            let mut all = vec![a, b, c, d];
            // One of the orders of four.
            all.swap(0, order % 4);
            all.swap(1, 1 + order / 4 % 3);
            all.swap(2, 2 + order / 12);
            all.truncate(count.max(2));
            format!("{{{}}}", all.join(","))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn first_walk_reads_what_is_read_afterwards(
        inputs in proptest::collection::vec(input(), 0..4),
        same: bool,
        cut in 0..600usize,
    ) {
        let dtypes = [DType::Fp32, if same { DType::Fp32 } else { DType::Int8 }];
        let text = format!(r#"{{"id":"x","inputs":[{}],"inputs":1}}"#, inputs.join(", "));
        let _ = compare(&text, &dtypes);
        // The same with one character missing.
        let mut damaged = text;
        if cut < damaged.len() && damaged.is_char_boundary(cut) {
            damaged.remove(cut);
        }
        let _ = compare(&damaged, &dtypes);
    }
}

#[test]
fn numbers_are_converted_on_the_first_walk() {
    let sorted = r#"{"data":[1,2],"datatype":"FP32","name":"I0","shape":[2]}"#;
    let nested = r#"{"name":"I0","shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4]]}"#;
    let nested_first = r#"{"data":[[1,2],[3,4]],"shape":[2,2],"datatype":"FP32"}"#;
    let named = r#"{"name":"I0","data":[1,2],"shape":[2],"datatype":"FP32"}"#;
    let other = r#"{"data":[1,2],"datatype":"INT8","shape":[2]}"#;
    let strings = r#"{"shape":[1],"datatype":"BYTES","data":["a"]}"#;
    let one = &[DType::Fp32][..];
    let two = &[DType::Fp32, DType::Int8][..];
    for (inputs, dtypes, want) in [
        (vec![sorted, nested], one, vec![true, true]),
        (vec![sorted, named, nested], two, vec![false, true, true]),
        (vec![nested_first, other, strings], one, vec![false, false, false]),
        (vec![nested; 10], one, [vec![true; 8], vec![false; 2]].concat()),
    ] {
        let text = format!(r#"{{"inputs":[{}]}}"#, inputs.join(","));
        assert_eq!(compare(&text, dtypes).unwrap(), want, "{text}");
    }
}

#[test]
fn depth_counts_from_the_root() {
    for (levels, read) in [(97, true), (98, false)] {
        let data = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let text = format!(r#"{{"inputs":[{{"shape":[1],"datatype":"INT8","data":{data}}}]}}"#);
        assert_eq!(compare(&text, &[DType::Int8]).is_ok(), read);
    }
}

#[test]
fn members_of_generate_requests_are_converted_if_flat() {
    let signature = signature(&[DType::Fp32, DType::String, DType::Int8]);
    let text = br#"{"I0":[1,2.5, 3],"I1":["a"],"I2":[[1]],"x":[1],"I0":7}"#;
    let mut tensors = JsonTensors::new(&signature, LIMIT);
    let members = read_members(text, &mut tensors).unwrap().unwrap();
    let keys: Vec<&[u8]> = members.iter().map(|(key, _)| key.as_ref()).collect();
    assert_eq!(keys, [b"I0", b"I1", b"I2", &b"x"[..], b"I0"]);
    let read = members.iter().filter_map(|(_, value)| match value {
        JsonValue::Array(array) => Some(tensors.elements(*array)),
        _ => None,
    });
    assert_eq!(read.collect::<Vec<_>>(), [Some(3), None, None, None]);
    assert!(super::read_members(b"[1]", &mut tensors).unwrap().is_none());
    assert!(super::read_members(b"{\"I0\":[1,2}", &mut tensors).is_err());
}
