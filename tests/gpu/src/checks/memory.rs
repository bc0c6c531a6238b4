//! Device memory is flat over many requests.

use crate::Options;
use crate::cuda::Driver;
use crate::report::{CheckResult, Outcome};
use crate::tensors::mean_time;
use crate::{install, models};

const CLIENTS: usize = 8;
const FLOATS: usize = 4096;
/// Bytes that other programs and the driver may take meanwhile.
const MARGIN: u64 = 4 << 20;

pub fn run(driver: &Driver, options: &Options) -> CheckResult {
    let context = driver.context(&driver.devices()[0])?;
    let group = "kind: KIND_GPU gpus: 0 count: 2";
    let batching = "dynamic_batching { }\n";
    let server = install::server().model("add", models::add("add", group, &[]) + batching).start();
    // The pools grow to what the load needs.
    mean_time(server.http(), "add", FLOATS, CLIENTS, (options.requests / 50).div_ceil(CLIENTS))?;
    let used = || context.memory().map(|(free, total)| total - free);
    let before = used()?;
    let time =
        mean_time(server.http(), "add", FLOATS, CLIENTS, options.requests.div_ceil(CLIENTS))?;
    let after = used()?;
    let figures = format!(
        "{} requests: {} bytes of the GPU in use before, {} after; {:.0} requests/s",
        options.requests,
        before,
        after,
        1.0 / time.as_secs_f64()
    );
    if after <= before + MARGIN { Ok(Outcome::Pass(figures)) } else { Err(figures) }
}
