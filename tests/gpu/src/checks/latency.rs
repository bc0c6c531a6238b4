//! The time that the server adds to the driver calls of a small request.

use crate::Options;
use crate::cuda::Driver;
use crate::report::{CheckResult, Outcome};
use crate::tensors::{floats, mean_time, median, served, sum};
use crate::{install, models};
use std::time::Duration;

/// Floats of a tensor of 4 KiB.
const FLOATS: usize = 1024;
const REQUESTS: usize = 5000;
/// What the server may add.
const LIMIT: Duration = Duration::from_micros(40);

pub fn run(driver: &Driver, _: &Options) -> CheckResult {
    let bare = bare(driver)?;
    let server =
        install::server().model("add", models::add("add", "kind: KIND_GPU gpus: 0", &[])).start();
    mean_time(server.http(), "add", FLOATS, 1, REQUESTS / 10)?;
    let statistics = || served(&server.get("/v2/models/add/stats").json());
    let (count, time) = statistics()?;
    let client = mean_time(server.http(), "add", FLOATS, 1, REQUESTS)?;
    let (count, time) = (statistics()?.0 - count, statistics()?.1 - time);
    let in_server = time / (count.max(1)) as u32;
    let added = in_server.saturating_sub(bare);
    let figures = format!(
        "4 KiB: bare driver calls {bare:.1?}, in the server {in_server:.1?} (added {added:.1?}, at most {LIMIT:?}), \
         by the client {client:.1?}"
    );
    match added <= LIMIT {
        _ if driver.is_test_double() => Ok(Outcome::Skip(format!("of a test double: {figures}"))),
        true => Ok(Outcome::Pass(figures)),
        false => Err(figures),
    }
}

/// Median time of two uploads, a kernel and a download.
fn bare(driver: &Driver) -> Result<Duration, String> {
    let context = driver.context(&driver.devices()[0])?;
    let add = context.add()?;
    let [a, b, out] =
        [context.alloc(4 * FLOATS)?, context.alloc(4 * FLOATS)?, context.alloc(4 * FLOATS)?];
    let (from_a, from_b, mut to) = (floats(0.0, FLOATS), floats(1.0, FLOATS), vec![0; 4 * FLOATS]);
    let time = median(REQUESTS, || {
        a.upload(&from_a)?;
        b.upload(&from_b)?;
        add.launch(&a, &b, &out, FLOATS as u32)?;
        out.download(&mut to)?;
        context.synchronize()
    })?;
    if to != sum(FLOATS) {
        return Err("the bare driver calls return a wrong sum".to_owned());
    }
    Ok(time)
}
