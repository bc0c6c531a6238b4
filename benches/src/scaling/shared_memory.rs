//! Large tensors in a client's system shared memory, compared with the same tensors sent over the
//! same connection.

use super::{selected, size_name};
use crate::exchange::{Exchange, Expect, grpc, http};
use crate::options::Options;
use crate::process::Process;
use crate::requests::{Frontend, Work, exchanges, v2_message};
use crate::table::Table;
use crate::{Result, load, pairs, repository, status};
use bytes::Bytes;
use serde_json::{Value, json};
use std::fs::{File, remove_file};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use trtserver_proto::v2::{InferParameter, infer_parameter::ParameterChoice};

pub const COLUMNS: &[&str] = &[
    "system shared memory",
    "req/s",
    "p50 µs",
    "p99 µs",
    "CPU µs/req",
    "sent req/s",
    "sent p50",
    "sent p99",
    "sent CPU",
    "times req/s",
];
const SIZES: [usize; 2] = [64 << 10, 16 << 20];
/// Name of the shared-memory region.
const NAME: &str = "bench";

fn name((frontend, bytes): (Frontend, usize)) -> String {
    format!("scaling shared memory {} {} c1", frontend.name(), size_name(bytes))
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let rows = selected(options, &SIZES, name);
    if rows.is_empty() {
        return Ok(());
    }
    let models = repository::serving(options)?;
    let server = Process::server(options, models.path())?;
    pairs::rows(&server, &rows, table, |row| name(*row), |row, server| one(options, *row, server));
    Ok(())
}

fn one(
    options: &Options,
    (frontend, bytes): (Frontend, usize),
    server: &Process,
) -> Result<Vec<String>> {
    let work = Work::Identity(bytes);
    let object = Object::new(bytes as u64)?;
    let input: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    object.file.write_all_at(&input, 0).map_err(|e| object.failed(&e))?;
    let address = server.target().http()?;
    let region = format!("/v2/systemsharedmemory/region/{NAME}");
    let json = json!({ "key": object.key, "offset": 0, "byte_size": 2 * bytes });
    status::post(address, &format!("{region}/register"), &json.to_string())?;
    let (shared, sent) = ([shared(frontend, work)], exchanges(frontend, work));
    let pass =
        |exchanges: &[Exchange], length| load::pass(server, frontend.wire(), exchanges, 1, length);
    let pairs = pairs::run(options, |length| pass(&shared, length), |length| pass(&sent, length));
    let mut output = vec![0; bytes];
    object.file.read_exact_at(&mut output, bytes as u64).map_err(|e| object.failed(&e))?;
    status::post(address, &format!("{region}/unregister"), "")?;
    let pairs = pairs?;
    if output != input {
        return Err("the output in shared memory is not the input".into());
    }
    let both = [
        pairs.both(|pass| pass.per_second),
        pairs.both(|pass| pass.p50_us),
        pairs.both(|pass| pass.p99_us),
        pairs.both(|pass| pass.cpu_us),
    ];
    let both = both.map(|(with, without)| [with, without].map(|number| format!("{number:.0}")));
    let cells = both.iter().map(|cell| cell[0].clone());
    let cells = cells.chain(both.iter().map(|cell| cell[1].clone()));
    Ok(cells.chain([format!("{:.1}", pairs.ratio(|pass| pass.per_second))]).collect())
}

/// The request whose input is the first half of the region, and whose output is written to the
/// second half.
fn shared(frontend: Frontend, work: Work) -> Exchange {
    let (bytes, elements) = (work.bytes(), work.bytes() / 4);
    let parameters = |offset: usize| -> Value {
        json!({ "shared_memory_region": NAME, "shared_memory_offset": offset, "shared_memory_byte_size": bytes })
    };
    if frontend == Frontend::V2Http {
        let input = json!({
            "name": "INPUT0", "datatype": "FP32", "shape": [elements], "parameters": parameters(0),
        });
        let output = json!({ "name": "OUTPUT0", "parameters": parameters(bytes) });
        let json = json!({ "inputs": [input], "outputs": [output] }).to_string();
        let end = format!(r#""datatype":"FP32","shape":[{elements}]}}]}}"#);
        let path = format!("/v2/models/{}/infer", work.model());
        return http(&path, "", json.as_bytes(), Expect::Ends(end.into()));
    }
    let mut message = v2_message(work);
    let parameters = |offset: usize| {
        let numbers = [("shared_memory_offset", offset), ("shared_memory_byte_size", bytes)];
        let numbers = numbers.map(|(key, n)| (key, ParameterChoice::Int64Param(n as i64)));
        let region = ("shared_memory_region", ParameterChoice::StringParam(NAME.to_owned()));
        let all = numbers.into_iter().chain([region]);
        all.map(|(key, value)| (key.to_owned(), InferParameter { parameter_choice: Some(value) }))
            .collect()
    };
    message.raw_input_contents.clear();
    message.inputs[0].parameters = parameters(0);
    message.outputs[0].parameters = parameters(bytes);
    // The raw entry of the output is empty.
    let end = Bytes::from_static(&[6 << 3 | 2, 0]);
    grpc("/inference.GRPCInferenceService/ModelInfer", &message, Expect::Ends(end))
}

/// A shared-memory object for input and output, removed when dropped.
struct Object {
    key: String,
    path: PathBuf,
    file: File,
}

impl Object {
    fn new(bytes: u64) -> Result<Self> {
        let key = format!("trtserver-bench-{}", std::process::id());
        let path = PathBuf::from("/dev/shm").join(&key);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|e| format!("{}: {e}", path.display()))?;
        file.set_len(2 * bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { key: format!("/{key}"), path, file })
    }

    fn failed(&self, e: &std::io::Error) -> String {
        format!("{}: {e}", self.path.display())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = remove_file(&self.path);
    }
}
