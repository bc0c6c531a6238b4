//! Sums computed by a kernel on each GPU: alone, in batches, and as long as a copy needs several
//! pieces.

use crate::Options;
use crate::cuda::Driver;
use crate::report::{CheckResult, Outcome};
use crate::tensors::mean_time;
use crate::{install, models};

/// Elements of the requests.
const SIZES: [usize; 4] = [1, 1000, 1 << 18, 1 << 21];

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    let mut server = install::server();
    let names: Vec<String> =
        driver.devices().iter().map(|device| format!("gpu{}", device.ordinal)).collect();
    for (device, name) in driver.devices().iter().zip(&names) {
        let group = format!("kind: KIND_GPU gpus: {} count: 2", device.ordinal);
        let batching = "dynamic_batching { max_queue_delay_microseconds: 500 }\n";
        server = server.model(name, models::add(name, &group, &[]) + batching);
    }
    let server = server.start();
    for name in &names {
        for size in SIZES {
            mean_time(server.http(), name, size, 1, 3)?;
            mean_time(server.http(), name, size, 8, 8)?;
        }
    }
    match server.stop().success() {
        true => Ok(Outcome::Pass(format!(
            "{} sums each of up to 8 MiB on {}",
            4 * 67,
            names.join(", ")
        ))),
        false => Err("the server did not exit with 0".to_owned()),
    }
}
