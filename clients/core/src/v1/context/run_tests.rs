//! Unit tests of a run: the header that is sent, and the texts of the checks.

use super::*;
use trtserver_proto::text;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput};

/// A fixed, a variable and a string input, one output.
fn run(max_batch_size: u64) -> Run {
    let input = |name: &str, data_type: DataType, dims: &[i64]| ModelInput {
        name: name.into(),
        data_type: data_type.into(),
        dims: dims.to_vec(),
        ..ModelInput::default()
    };
    let config = ModelConfig {
        input: vec![
            input("FIXED", DataType::TypeInt32, &[2]),
            input("ANY", DataType::TypeFp32, &[-1, 2]),
            input("TEXT", DataType::TypeString, &[2]),
        ],
        output: vec![ModelOutput { name: "OUT".into(), ..ModelOutput::default() }],
        ..ModelConfig::default()
    };
    let model = ServedModel { name: "m".into(), version: -1, max_batch_size, config };
    Run::new(Arc::new(model), Arc::default())
}

fn options(batch_size: u64) -> RunOptions {
    RunOptions { batch_size, ..RunOptions::default() }
}

#[track_caller]
fn text_of<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().message().to_owned()
}

#[test]
fn header_is_that_of_the_original_library() {
    let mut run = run(8);
    let region = OutputFormat::SharedMemory { region: "r".into(), offset: 4, byte_size: 16 };
    run.set_options(&RunOptions {
        batch_size: 2,
        flags: 3,
        correlation_id: 9,
        outputs: vec![
            ("OUT".into(), OutputFormat::Raw),
            ("OUT".into(), OutputFormat::Class(5)),
            ("OUT".into(), region),
        ],
        ..RunOptions::default()
    })
    .unwrap();
    run.input("FIXED").unwrap().set_shared_memory("s", 0, 16).unwrap();
    run.input("ANY").unwrap().set_shape(&[1, 2]).unwrap();
    for _ in 0..2 {
        run.input("ANY").unwrap().set_raw(vec![0; 8]).unwrap();
        run.input("TEXT").unwrap().set_strings(&["ab", ""]).unwrap();
    }
    let prepared = run.prepare(7).unwrap();
    assert_eq!(
        text::print_line(&prepared.request().header),
        "batch_size: 2 \
         input { name: \"FIXED\" dims: 2 shared_memory { name: \"s\" byte_size: 16 } } \
         input { name: \"ANY\" dims: 1 dims: 2 } \
         input { name: \"TEXT\" dims: 2 batch_byte_size: 20 } \
         output { name: \"OUT\" } output { name: \"OUT\" cls { count: 5 } } \
         output { name: \"OUT\" shared_memory { name: \"r\" offset: 4 byte_size: 16 } } \
         correlation_id: 9 id: 7 flags: 3"
    );
    assert_eq!(prepared.request().inputs.len(), 2);
}

#[test]
fn checks_have_the_texts_of_the_original_library() {
    let mut run = run(4);
    assert_eq!(
        text_of(run.set_options(&options(5))),
        "run batch-size 5 exceeds maximum batch size 4 allowed for model 'm'"
    );
    assert_eq!(text_of(run.input("NONE").map(|_| ())), "unknown input 'NONE' for 'm'");
    let outputs = vec![("NONE".into(), OutputFormat::Raw)];
    let unknown = RunOptions { outputs, ..RunOptions::default() };
    assert_eq!(text_of(run.set_options(&unknown)), "unknown output 'NONE' for 'm'");
    run.set_options(&options(2)).unwrap();
    let fixed = run.input("FIXED").unwrap();
    assert_eq!(
        text_of(fixed.set_raw(vec![0; 7])),
        "invalid size 7 bytes for input 'FIXED', expects 8 bytes"
    );
    fixed.set_raw(vec![0; 8]).unwrap();
    assert_eq!(
        text_of(fixed.set_shared_memory("r", 0, 16)),
        "The input 'FIXED' has already been set with SetRaw"
    );
    assert_eq!(
        text_of(run.prepare(0)),
        "expecting 2 invocations of SetRaw for input 'FIXED', have 1"
    );
    let fixed = run.input("FIXED").unwrap();
    fixed.set_raw(vec![0; 8]).unwrap();
    assert_eq!(
        text_of(fixed.set_raw(vec![0; 8])),
        "expecting 2 invocations of SetRaw for input 'FIXED', one per batch entry"
    );
    // That error has cleared the data.
    assert_eq!(
        text_of(fixed.set_shared_memory("r", 0, 8)),
        "The input 'FIXED' has shared memory of size 8 bytes while the expected size is 2 * 8 = 16 bytes"
    );
    fixed.set_shared_memory("r", 0, 16).unwrap();
    assert_eq!(
        text_of(fixed.set_shared_memory("r", 0, 16)),
        "The input 'FIXED' can only be set once with SetSharedMemory"
    );
    assert_eq!(
        text_of(fixed.set_raw(vec![0; 8])),
        "The input 'FIXED' has already been set with SetSharedMemory"
    );
    assert_eq!(
        text_of(fixed.set_strings(&["a"])),
        "non-string tensor 'FIXED' cannot be set from string data"
    );
    let any = run.input("ANY").unwrap();
    assert_eq!(any.byte_size(), -1);
    assert_eq!(
        text_of(any.set_raw(vec![0; 8])),
        "must set shape for variable-size input 'ANY' before setting input data"
    );
    assert_eq!(
        text_of(any.set_shape(&[-1])),
        "attempt to set invalid shape dimension -1, shape dimensions must be >= 0 for input 'ANY"
    );
    let text = run.input("TEXT").unwrap();
    assert_eq!(text_of(text.set_strings(&["a"])), "expecting 2 strings for input 'TEXT', got 1");
}

#[test]
fn batch_size_zero_is_sent_as_one() {
    let mut run = run(0);
    run.set_options(&options(0)).unwrap();
    assert_eq!(run.header.batch_size, 1);
    assert_eq!(
        text_of(run.set_options(&options(2))),
        "run batch-size 2 exceeds maximum batch size 1 allowed for model 'm'"
    );
}
