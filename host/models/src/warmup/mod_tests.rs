//! Unit tests of `warmup`.

use super::*;
use std::fs;
use tempfile::TempDir;
use trtserver_model_config::ConfigFault;
use trtserver_request::strings;

const HEAD: &str = "name: 'm' input { name: 'F' data_type: TYPE_FP32 dims: [ 2, -1 ] } \
                    input { name: 'S' data_type: TYPE_STRING dims: 2 optional: true } \
                    output { name: 'O' data_type: TYPE_FP32 dims: -1 }";

/// A model directory with data files.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("warmup/sub")).unwrap();
    let mut texts = Vec::new();
    strings::push_string(&mut texts, b"one");
    strings::push_string(&mut texts, b"");
    let short = texts[..texts.len() - 1].to_vec();
    for (name, bytes) in [
        ("sub/f", (0..16).collect()),
        ("few", vec![0; 15]),
        ("many", vec![0; 17]),
        ("s", texts.clone()),
        ("s_short", short),
        ("s_one", texts[..7].to_vec()),
        ("s_three", [&texts[..], &[0; 4]].concat()),
        ("s_stray", [&texts[..], &[0; 2]].concat()),
    ] {
        fs::write(dir.path().join("warmup").join(name), bytes).unwrap();
    }
    dir
}

fn build(batch: u32, warmup: &str, change: impl FnOnce(&mut ModelSignature)) -> Built {
    let text = format!("{HEAD} max_batch_size: {batch} {warmup}");
    let config: ModelConfig = trtserver_proto::text::parse(&text).unwrap();
    let mut signature = ModelSignature::new(&config, |_| None).unwrap();
    change(&mut signature);
    let folder = folder();
    let places = FilePlaces::new(folder.path(), []);
    build_samples(&config, &signature, &places, &mut LoadMemory::new(1 << 20))
}

type Built = Result<Arc<[WarmupSample]>, ConfigError>;

fn sample(fields: &str, inputs: &[(&str, &str)]) -> String {
    let inputs: String =
        inputs.iter().map(|(k, v)| format!("inputs {{ key: '{k}' value {{ {v} }} }} ")).collect();
    format!("model_warmup {{ name: 's' {fields} {inputs} }}")
}

const F: &str = "data_type: TYPE_FP32 dims: [ 2, 2 ]";
const S: &str = "data_type: TYPE_STRING dims: 2";

#[test]
fn data_is_zero_random_or_from_a_file() {
    let zeros = |n: usize| vec![0u8; n];
    let mut texts = Vec::new();
    strings::push_string(&mut texts, b"one");
    strings::push_string(&mut texts, b"");
    for (f, s, want_f, want_s) in [
        ("zero_data: true", "zero_data: true", Some(zeros(16)), zeros(8)),
        ("random_data: true", "random_data: true", None, zeros(8)),
        (
            "input_data_file: 'sub/f'",
            "input_data_file: 's'",
            Some((0..16).collect()),
            texts.clone(),
        ),
    ] {
        let warmup =
            sample("batch_size: 3", &[("S", &format!("{S} {s}")), ("F", &format!("{F} {f}"))]);
        let built = build(8, &warmup, |_| {}).unwrap();
        let [one] = &built[..] else { panic!("{} samples", built.len()) };
        assert_eq!((&*one.name, one.runs, one.calls), ("s", 1, 3));
        let [got_f, got_s] = &one.inputs[..] else { panic!("{} inputs", one.inputs.len()) };
        assert_eq!((got_f.index, &got_f.shape[..]), (0, &[1, 2, 2][..]));
        assert_eq!((got_s.index, &got_s.shape[..]), (1, &[1, 2][..]));
        assert_eq!(*got_s.data.payload(), want_s);
        match want_f {
            Some(want) => assert_eq!(*got_f.data.payload(), want),
            None => {
                let values = got_f
                    .data
                    .payload()
                    .chunks(4)
                    .map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                assert!(values.clone().all(|v| (0.0..1.0).contains(&v)));
                assert!(values.filter(|v| *v > 0.0).count() > 2);
            }
        }
    }
}

#[test]
fn random_values_are_finite_and_in_range() {
    for number in 1..=14 {
        let dtype = DType::from_number(number).unwrap();
        let random = trtserver_proto::v2::model_warmup::input::InputDataType::RandomData(true);
        let dir = folder();
        let places = FilePlaces::new(dir.path(), []);
        let data =
            WarmupSource::new(&places, &mut LoadMemory::new(1 << 20), LedgerHolder::WarmUp.into())
                .bytes(dtype, &[1001], Some(&random))
                .unwrap();
        assert_eq!(data.len(), 1001 * dtype.size().unwrap_or(4));
        let fits = |element: &[u8]| match dtype {
            DType::Bool => element[0] <= 1,
            DType::Fp64 => (0.0..1.0).contains(&f64::from_le_bytes(element.try_into().unwrap())),
            DType::Bf16 => {
                let bits = u16::from_le_bytes(element.try_into().unwrap());
                (0.0..1.0).contains(&f32::from_bits(u32::from(bits) << 16))
            }
            DType::Fp16 => u16::from_le_bytes(element.try_into().unwrap()) < 0x3c00,
            _ => true,
        };
        assert!(data.chunks(dtype.size().unwrap_or(4)).all(fits), "{dtype:?}");
        assert_eq!(data.iter().any(|b| *b != 0), dtype != DType::String, "{dtype:?}");
    }
}

#[test]
fn count_batch_size_and_optional_inputs() {
    let zero = format!("{F} zero_data: true");
    let skipped = sample("count: 2", &[("F", &zero)]);
    let twice = sample("batch_size: 1 count: 2", &[("F", &zero)]);
    let built = build(0, &format!("{skipped} {twice} {twice}"), |_| {}).unwrap();
    assert_eq!(built.len(), 2);
    assert_eq!((built[0].runs, built[0].calls, built[0].inputs.len()), (2, 1, 1));
    assert_eq!(&built[0].inputs[0].shape[..], [2, 2]);
}

#[test]
fn what_a_sample_has_too_much_is_left_out() {
    let zero = format!("{F} zero_data: true");
    let many = format!("{F} input_data_file: 'many'");
    for (batch, fields, inputs, calls) in [
        (2, "batch_size: 3", vec![("F", &zero)], 2),
        (0, "batch_size: 2", vec![("F", &zero)], 1),
        (8, "batch_size: 4000000000", vec![("F", &zero)], 8),
        (0, "batch_size: 1", vec![("F", &many)], 1),
        (0, "batch_size: 1", vec![("F", &zero), ("X", &zero)], 1),
    ] {
        let inputs: Vec<(&str, &str)> = inputs.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let built = build(batch, &sample(fields, &inputs), |_| {}).unwrap();
        assert_eq!((built[0].calls, built[0].inputs.len()), (calls, 1), "{fields} {inputs:?}");
        assert_eq!(built[0].inputs[0].data.payload().len(), 16, "{fields} {inputs:?}");
    }
}

#[test]
fn invalid_samples_are_refused() {
    let head = "model 'm', warmup sample 's': ";
    let with = |fields: &str, f: &str| sample(fields, &[("F", f)]);
    let file = |f: &str| with("batch_size: 1", &format!("{F} input_data_file: '{f}'"));
    let text = |s: &str| {
        let (zero, s) = (format!("{F} zero_data: true"), format!("{S} input_data_file: '{s}'"));
        sample("batch_size: 1", &[("F", &zero), ("S", &s)])
    };
    let f = " for input 'F' of warmup sample 's' for m";
    let s = " for input 'S' of warmup sample 's' for m";
    let zero = format!("{F} zero_data: true");
    for (batch, warmup, want) in [
        (0, sample("batch_size: 1", &[]), format!("{head}input 'F' is missing")),
        (0, sample("batch_size: 1", &[("X", &zero)]), format!("{head}input 'F' is missing")),
        (
            0,
            with("batch_size: 1", "data_type: TYPE_INT32 dims: [ 2, 2 ] zero_data: true"),
            format!("{head}input 'F' has data_type TYPE_INT32, but the model expects TYPE_FP32"),
        ),
        (
            0,
            with("batch_size: 1", "dims: [ 2, 2 ] zero_data: true"),
            format!("{head}input 'F' has data_type TYPE_INVALID, but the model expects TYPE_FP32"),
        ),
        (
            0,
            with("batch_size: 1", "data_type: TYPE_FP32 dims: [ 3, 2 ] zero_data: true"),
            format!("{head}input 'F' has dims [3,2], but the model expects [2,-1]"),
        ),
        (
            0,
            with(
                "batch_size: 1",
                "data_type: TYPE_FP32 dims: [ 2, 9223372036854775807 ] zero_data: true",
            ),
            format!("warmup data of shape [2,9223372036854775807] does not fit into memory{f}"),
        ),
        (
            0,
            file("few"),
            format!(
                "warmup setting expects 16 bytes, but the data provided from fewonly has 15 bytes{f}"
            ),
        ),
        (
            0,
            file("../warmup/sub/f"),
            format!("warmup data file '../warmup/sub/f' leaves the model's 'warmup' directory{f}"),
        ),
        (
            0,
            file("/etc/hostname"),
            format!("warmup data file '/etc/hostname' leaves the model's 'warmup' directory{f}"),
        ),
        (0, file(""), format!("warmup data file '' leaves the model's 'warmup' directory{f}")),
        (
            0,
            text("s_one"),
            format!("warmup setting expects 2 strings, but the data provided from s_one has 1{s}"),
        ),
        (
            0,
            text("s_three"),
            format!(
                "warmup setting expects 2 strings, but the data provided from s_three has more{s}"
            ),
        ),
        (
            0,
            text("s_short"),
            format!(
                "warmup setting expects 2 strings, but the data provided from s_short ends with 3 of the 4 bytes of a length{s}"
            ),
        ),
        (
            0,
            text("s_stray"),
            format!(
                "warmup setting expects 2 strings, but the data provided from s_stray has 2 bytes behind them{s}"
            ),
        ),
    ] {
        let error = build(batch, &warmup, |_| {}).expect_err(&warmup);
        assert_eq!((error.fault, error.message), (ConfigFault::Invalid, want), "{warmup}");
    }
}

#[test]
fn missing_file_is_refused() {
    let warmup = sample("batch_size: 1", &[("F", &format!("{F} input_data_file: 'none'"))]);
    let error = build(0, &warmup, |_| {}).unwrap_err();
    assert_eq!(error.fault, ConfigFault::Unreadable);
    for part in ["unable to read warmup data file '", "warmup/none': ", "input 'F'", "sample 's'"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
}

#[test]
fn control_and_state_inputs_are_optional() {
    let hidden = |signature: &mut ModelSignature| {
        let role = InputRole::Control;
        signature.hidden =
            vec![TensorSpec { role, ..TensorSpec::new("START", DType::Int32, &[1]) }];
    };
    let zero = format!("{F} zero_data: true");
    let start = "data_type: TYPE_INT32 dims: 1 random_data: true";
    for (inputs, zeros) in
        [(&[("F", &*zero)][..], true), (&[("F", &*zero), ("START", start)], false)]
    {
        let built = build(4, &sample("batch_size: 1", inputs), hidden).unwrap();
        let got = built[0].inputs.last().unwrap();
        assert_eq!((got.index, &got.shape[..]), (2, &[1, 1][..]));
        assert_eq!(*got.data.payload() == [0u8; 4][..], zeros);
    }
}
