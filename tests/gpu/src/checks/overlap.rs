//! Copies of one batch run beside the kernel of another: requests with large tensors and a slow
//! kernel take less time than both one after the other. The tensors are in system shared memory.

use crate::Options;
use crate::cuda::Driver;
use crate::region::Region;
use crate::report::{CheckResult, Outcome};
use crate::tensors::{floats, mean_time_of};
use crate::{install, models};
use serde_json::json;
use trtserver_tests::http1::{Response, request};

/// Floats of a tensor of 16 MiB.
const LARGE: usize = 1 << 22;
const CLIENTS: usize = 4;
const REQUESTS: usize = 20;
/// Part of the shorter of both times that must be hidden behind the longer one.
const HIDDEN: f64 = 0.3;

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    let group = "kind: KIND_GPU gpus: 0";
    let server = install::server()
        .model("copy", models::add("copy", group, &[]))
        .model("spin", models::add("spin", group, &[("spin_us", "3000")]))
        .flag("--allow-client-shm=true")
        .start();
    // Both inputs, and place for the output.
    let bytes = [floats(0.0, LARGE), floats(1.0, LARGE), vec![0; 4 * LARGE]].concat();
    let _region = Region::register(&server, "r", &bytes)?;
    let ok = |response: &Response| match response.status {
        200 => Ok(()),
        status => Err(format!("status {status}: {}", response.text())),
    };
    let time = |model: &str, n: usize| {
        mean_time_of(server.http(), &in_region(model, n), ok, CLIENTS, 2)?;
        mean_time_of(server.http(), &in_region(model, n), ok, CLIENTS, REQUESTS)
    };
    let (copies, kernel, both) = (time("copy", LARGE)?, time("spin", 1)?, time("spin", LARGE)?);
    let shorter = copies.min(kernel).as_secs_f64();
    let hidden = ((copies + kernel).as_secs_f64() - both.as_secs_f64()) / shorter;
    let figures = format!(
        "per request: copies {copies:.1?}, kernel {kernel:.1?}, both {both:.1?}: {:.0} % of the shorter one is hidden, at \
         least {:.0} % expected",
        100.0 * hidden,
        100.0 * HIDDEN
    );
    match hidden >= HIDDEN {
        _ if driver.is_test_double() => Ok(Outcome::Skip(format!("of a test double: {figures}"))),
        true => Ok(Outcome::Pass(figures)),
        false => Err(figures),
    }
}

/// A request with tensors of `n` floats, all in the region.
fn in_region(model: &str, n: usize) -> Vec<u8> {
    let at = |number: usize| {
        json!({ "shared_memory_region": "r", "shared_memory_byte_size": 4 * n,
                "shared_memory_offset": 4 * LARGE * number })
    };
    let input = |name: &str, number: usize| json!({ "name": name, "datatype": "FP32", "shape": [1, n], "parameters": at(number) });
    let body = json!({
        "inputs": [input("INPUT0", 0), input("INPUT1", 1)],
        "outputs": [{ "name": "OUTPUT0", "parameters": at(2) }],
    });
    request("POST", &format!("/v2/models/{model}/infer"), &[], body.to_string().as_bytes())
}
