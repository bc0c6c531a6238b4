//! The errors of request headers as tables: a header text and its error on each line.

use super::*;
use crate::testing;
use proptest::prelude::*;
use trtserver_base::error::Code;

fn planned(model: &str, header: &str) -> Result<RequestPlan> {
    let ctx = testing::context("");
    let served = find_version(&ctx.models, model, RequestedVersion::Latest)?;
    plan_request(&served.signature, &parse_header(model, Some(header.as_bytes()))?)
}

#[test]
fn repeated_headers_are_parsed_once_and_equal() {
    let is_kept = |header: &str| {
        REPEATED_HEADERS.with(|headers| headers.borrow().get(header.as_bytes()).is_some())
    };
    let input =
        "batch_size: 2 input { name: \"A\" dims: 4 } output { name: \"O\" cls { count: 1 } }";
    for (header, kept) in [
        (input.to_owned(), true),
        (format!("id: 7 {input}"), false),
        (format!("correlation_id: 7 {input}"), false),
        (format!("flags: 1 {input}"), false),
        ("batch_size: ".to_owned(), false),
    ] {
        let [first, second] = [(); 2].map(|()| parse_header("m", Some(header.as_bytes())));
        assert_eq!(first, second, "{header}");
        assert_eq!(is_kept(&header), kept, "{header}");
    }
}

#[test]
fn requested_version_is_found() {
    let ctx = testing::context("");
    let repository = &ctx.models;
    let found = |model, version| find_version(repository, model, version).map(|s| s.version);
    assert_eq!(found("m", RequestedVersion::Latest), Ok(3));
    assert_eq!(found("m", RequestedVersion::Exact(3)), Ok(3));
    assert_eq!(found("m", RequestedVersion::ZeroOrLatest), Ok(3));
    assert_eq!(found("simple", RequestedVersion::ZeroOrLatest), Ok(0));
    assert_eq!(found("simple", RequestedVersion::Latest), Ok(1));
    let unknown =
        |m: &str| Err(Error::unavailable(format!("Inference request for unknown model '{m}'")));
    for (model, version) in [
        ("none", RequestedVersion::Latest),
        ("", RequestedVersion::Latest),
        ("m", RequestedVersion::Exact(0)),
        ("m", RequestedVersion::Exact(4)),
        ("refused", RequestedVersion::ZeroOrLatest),
    ] {
        assert_eq!(found(model, version), unknown(model), "{model} {version:?}");
    }
    for (number, version) in [
        (-1, RequestedVersion::Latest),
        (0, RequestedVersion::ZeroOrLatest),
        (7, RequestedVersion::Exact(7)),
    ] {
        assert_eq!(RequestedVersion::from_number(number), version);
    }
}

/// Model `simple`: INT32 inputs INPUT0 and INPUT1 [16], the same outputs, up to 8 rows.
#[test]
fn rows_2_to_10_and_12() {
    const OK: &str = "batch_size: 1 input { name: \"INPUT0\" dims: 16 } input { name: \"INPUT1\" }";
    let rows: &[(&str, Result<usize, &str>)] = &[
        (OK, Ok(128)),
        ("batch_size: 8 input { name: \"INPUT1\" } input { name: \"INPUT0\" }", Ok(1024)),
        ("nonsense", Err("unable to parse request for model 'simple'")),
        ("batch_size: 1 colour: 3", Err("unable to parse request for model 'simple'")),
        ("", Err("inference request batch-size must be >= 1 for 'simple'")),
        ("batch_size: 9", Err("inference request batch-size must be <= 8 for 'simple'")),
        (
            "batch_size: 1 output { name: \"X\" }",
            Err("unexpected inference output 'X' for model 'simple'"),
        ),
        (
            "batch_size: 1 output { name: \"OUTPUT0\" } output { name: \"OUTPUT0\" cls { count: 1 } }",
            Err("output 'OUTPUT0' already requested"),
        ),
        ("batch_size: 1", Err("expected 2 inputs but got 0 inputs for model 'simple'")),
        (
            "batch_size: 1 input { name: \"INPUT0\" } input { name: \"INPUT1\" } input { name: \"I\" }",
            Err("expected 2 inputs but got 3 inputs for model 'simple'"),
        ),
        (
            "batch_size: 1 input { name: \"INPUT0\" } input { name: \"INPUT0\" }",
            Err("input 'INPUT0' already exists in request"),
        ),
        (
            "batch_size: 1 input { name: \"INPUT0\" } input { name: \"I\" }",
            Err("unexpected inference input 'I' for model 'simple'"),
        ),
        (
            "batch_size: 1 input { name: \"INPUT0\" } input { name: \"INPUT1\" dims: [1, 16] }",
            Err(
                "unexpected shape for input 'INPUT1' for model 'simple'. Expected [16], got [1,16]",
            ),
        ),
        (
            "batch_size: 1 input { name: \"INPUT0\" dims: -1 } input { name: \"INPUT1\" }",
            Err("unexpected shape for input 'INPUT0' for model 'simple'. Expected [16], got [-1]"),
        ),
        (
            "batch_size: 2 input { name: \"INPUT0\" batch_byte_size: 128 } input { name: \"INPUT1\" \
             batch_byte_size: 64 }",
            Err(
                "specific batch-byte-size for input 'INPUT1' does not match expected byte-size calculated \
                 from shape and datatype for model 'simple'",
            ),
        ),
        (
            "batch_size: 1 input { name: \"INPUT0\" shared_memory { name: \"r\" } } input { name: \"INPUT1\" }",
            Ok(64),
        ),
    ];
    for (header, want) in rows {
        let got = planned("simple", header).map(|p| p.bytes()).map_err(|e| {
            assert_eq!(e.code, Code::InvalidArg);
            e.message
        });
        assert_eq!(got, want.map_err(str::to_owned), "{header}");
    }
    let no_text = parse_header("m", Some(b"\xff")).unwrap_err();
    assert_eq!(no_text.message, "unable to parse request for model 'm'");
    assert_eq!(parse_header("m", None).unwrap().batch_size, 0);
}

/// Model `m` does not batch: V FP32 [-1,2], S STRING [2], optional P BOOL [1]; outputs F, B, C.
#[test]
fn variable_strings_and_optional() {
    let ok = |v: &str, s: &str| format!("batch_size: 1 input {{ {v} }} input {{ {s} }}");
    let (v, s) = ("name: \"V\" dims: [3, 2]", "name: \"S\" batch_byte_size: 8");
    let variable = "model supports variable-size for input 'V', request must specify input shape for model 'm'";
    let strings = "batch-byte-size must be specified for input 'S' with non-fixed-size datatype for model 'm'";
    let count = "expected 3 inputs but got 2 inputs for model 'm'";
    let rows: &[(String, Result<usize, &str>)] = &[
        (ok(v, s), Ok(32)),
        (ok(s, v), Ok(32)),
        (ok("name: \"V\" dims: [0, 2]", s), Ok(8)),
        (ok(v, "name: \"S\" dims: 2 byte_size: 9"), Ok(33)),
        (format!("{} input {{ name: \"P\" }}", ok(v, s)), Ok(33)),
        (ok("name: \"V\"", s), Err(variable)),
        (ok(v, "name: \"S\""), Err(strings)),
        (ok(v, "name: \"P\""), Err(count)),
        (
            ok("name: \"V\" dims: [-1, 2]", s),
            Err("unexpected shape for input 'V' for model 'm'. Expected [-1,2], got [-1,2]"),
        ),
        (
            ok("name: \"V\" dims: [9223372036854775807, 2]", s),
            Err(
                "unexpected shape for input 'V' for model 'm'. Expected [-1,2], got [9223372036854775807,2]",
            ),
        ),
        (
            ok(v, s).replace("batch_size: 1", "batch_size: 2"),
            Err("inference request batch-size must be <= 0 for 'm'"),
        ),
    ];
    for (header, want) in rows {
        let got = planned("m", header).map(|p| p.bytes()).map_err(|e| e.message);
        assert_eq!(got, want.map_err(str::to_owned), "{header}");
    }
}

#[test]
fn sizes_per_item() {
    let header = |size: u64| {
        format!(
            "batch_size: 4 input {{ name: \"INPUT0\" byte_size: {size} }} input {{ name: \"INPUT1\" byte_size: 64 \
             }} output {{ name: \"OUTPUT1\" byte_size: 64 }} output {{ name: \"OUTPUT0\" cls {{ count: 3 }} }}"
        )
    };
    let plan = planned("simple", &header(64)).unwrap();
    assert!(plan.per_item);
    assert_eq!((plan.batch, plan.bytes()), (4, 512));
    assert_eq!(plan.inputs[0].shape.as_slice(), [4, 16]);
    let outputs = [(1, 0), (0, 3)].map(|(index, classes)| RequestedOutput::new(index, classes));
    assert_eq!(plan.outputs.as_slice(), outputs);
    for size in [63, 256, u64::MAX] {
        let error = planned("simple", &header(size)).unwrap_err();
        assert!(error.message.starts_with("specific batch-byte-size for input 'INPUT0'"), "{size}");
    }
}

#[test]
fn failures_count_under_a_valid_batch_size() {
    let ctx = testing::context("");
    let served = find_version(&ctx.models, "simple", RequestedVersion::Latest).unwrap();
    for (batch_size, counted) in [(0, 0), (1, 1), (8, 8), (9, 0), (u32::MAX, 0)] {
        let header = InferRequestHeader { batch_size, ..Default::default() };
        assert_eq!(counted_batch(&served.signature, &header), counted);
    }
}

proptest! {
    /// Any header is planned or refused, and the size of a plan matches its shapes.
    #[test]
    fn numbers_of_any_size(
        batch in prop_oneof![0u32..10, any::<u32>()],
        dims in proptest::collection::vec(prop_oneof![-2i64..20, any::<i64>()], 0..4),
        sizes in proptest::collection::vec(prop_oneof![0u64..200, any::<u64>()], 4),
    ) {
        let ctx = testing::context("");
        for (model, names) in [("simple", ["INPUT0", "INPUT1"]), ("m", ["V", "S"])] {
            let input = |i: usize| Input {
                name: names[i].into(),
                dims: if i == 0 { dims.clone() } else { vec![] },
                batch_byte_size: sizes[2 * i],
                byte_size: sizes[2 * i + 1],
                ..Input::default()
            };
            let header = InferRequestHeader {
                batch_size: batch,
                input: vec![input(0), input(1)],
                ..InferRequestHeader::default()
            };
            let served = find_version(&ctx.models, model, RequestedVersion::Latest).unwrap();
            if let Ok(plan) = plan_request(&served.signature, &header) {
                let input = &plan.inputs[0];
                prop_assert_eq!(element_count(&input.shape).unwrap() * 4, input.bytes);
                prop_assert!(plan.bytes() < 2 * MAX_BYTES);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(bytes: Vec<u8>) {
        let _ = parse_header("m", Some(&bytes));
    }
}

#[test]
fn long_strings_and_misaligned_tensors_of_regions_copy_much() {
    let spec = |name: &str, dtype| TensorSpec::new(name, dtype, &[-1]);
    let inputs = vec![spec("S", DType::String), spec("N", DType::Int32)];
    let signature = ModelSignature { inputs, ..ModelSignature::default() };
    let copies = |input: &str| {
        let header =
            parse_header("m", Some(format!("batch_size: 1 input {{ {input} }}").as_bytes()))
                .unwrap();
        let index = signature.input(&header.input[0].name).unwrap();
        let input = one_input(&signature, index, 1, &header.input[0]).unwrap();
        let (inputs, outputs) = (SmallVec::from_iter([input]), SmallVec::new());
        RequestPlan { batch: 1, inputs, outputs, per_item: false }.copies_much(&signature)
    };
    let strings = |bytes: usize, region: &str| {
        format!("name: \"S\" dims: 2 batch_byte_size: {bytes} {region}")
    };
    let numbers = |count: usize, offset: u64| {
        let bytes = 4 * count;
        format!(
            "name: \"N\" dims: {count} shared_memory {{ name: \"r\" offset: {offset} byte_size: {bytes} }}"
        )
    };
    let region = "shared_memory { name: \"r\" }";
    assert!(copies(&strings(MAX_INLINE + 1, region)));
    assert!(!copies(&strings(MAX_INLINE, region)));
    // In the message, whose length decides.
    assert!(!copies(&strings(MAX_INLINE + 1, "")));
    assert!(copies(&numbers(MAX_INLINE, 4)));
    assert!(!copies(&numbers(MAX_INLINE, 8)));
    assert!(!copies(&numbers(16, 4)));
}
