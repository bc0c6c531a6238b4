//! CUDA shared memory of both protocols: inputs and outputs in device memory of this process.

use crate::Options;
use crate::cuda::{Context, Driver, Memory};
use crate::report::{CheckResult, Outcome};
use crate::tensors::{floats, median, sum};
use crate::{install, models};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use trtserver_tests::http1::{Connection, request};
use trtserver_tests::{Response, Running};

const FLOATS: usize = 1 << 20;
const BYTES: usize = 4 * FLOATS;

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    let context = driver.context(&driver.devices()[0])?;
    let server = install::server()
        .model("add", models::add("add", "kind: KIND_GPU gpus: 0", &[]))
        .flag("--allow-client-shm=true")
        .start();
    let [a, b, out] = [context.alloc(BYTES)?, context.alloc(BYTES)?, context.alloc(BYTES)?];
    let (from_a, from_b) = (floats(0.0, FLOATS), floats(1.0, FLOATS));
    a.upload(&from_a)?;
    b.upload(&from_b)?;
    // The copies read both vectors until here.
    context.synchronize()?;
    register_v2(&server, "a", &a)?;
    register_v2(&server, "out", &out)?;
    register_v1(&server, "b", &b)?;
    let regions = server.get("/v2/cudasharedmemory/status").json();
    if regions.as_array().map(Vec::len) != Some(3) {
        return Err(format!("three regions were registered, the status lists {regions}"));
    }
    let infer = infer();
    let mut connection = Connection::open(server.http());
    ok("inference", &connection.send(&infer).response())?;
    if read(&context, &out)? != sum(FLOATS) {
        return Err("the output region does not hold the sum".to_owned());
    }
    let time = median(200, || ok("inference", &connection.send(&infer).response()))?;
    // A request in flight keeps its regions.
    ok("unregister", &server.post("/v2/cudasharedmemory/unregister", &[], ""))?;
    let refused = connection.send(&infer).response();
    if refused.status == 200 {
        return Err("a request used a region that was unregistered".to_owned());
    }
    Ok(Outcome::Pass(format!("two inputs and an output of 4 MiB each: {time:.1?} a request")))
}

fn ok(what: &str, response: &Response) -> Result<(), String> {
    match response.status {
        200 => Ok(()),
        status => Err(format!("{what}: status {status}: {}", response.text())),
    }
}

fn register_v2(server: &Running, name: &str, region: &Memory<'_>) -> Result<(), String> {
    let handle = STANDARD.encode(region.ipc_handle()?);
    let body = json!({ "raw_handle": { "b64": handle }, "device_id": 0, "byte_size": BYTES });
    let path = format!("/v2/cudasharedmemory/region/{name}/register");
    ok("register", &server.post(&path, &[], body.to_string()))
}

fn register_v1(server: &Running, name: &str, region: &Memory<'_>) -> Result<(), String> {
    let path = format!("/api/sharedmemorycontrol/cudaregister/{name}/{BYTES}/0?format=binary");
    ok("cudaregister", &server.post(&path, &[], region.ipc_handle()?))
}

fn infer() -> Vec<u8> {
    let at =
        |region: &str| json!({ "shared_memory_region": region, "shared_memory_byte_size": BYTES });
    let input = |name: &str, region: &str| -> Value {
        json!({ "name": name, "datatype": "FP32", "shape": [1, FLOATS], "parameters": at(region) })
    };
    let body = json!({
        "inputs": [input("INPUT0", "a"), input("INPUT1", "b")],
        "outputs": [{ "name": "OUTPUT0", "parameters": at("out") }],
    });
    request("POST", "/v2/models/add/infer", &[], body.to_string().as_bytes())
}

fn read(context: &Context, region: &Memory<'_>) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; BYTES];
    region.download(&mut bytes)?;
    context.synchronize()?;
    Ok(bytes)
}
