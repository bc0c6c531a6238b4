//! Copies of one batch run beside the kernel of another: requests with large tensors and a slow kernel take less time than both
//! one after the other.

use crate::Options;
use crate::cuda::Driver;
use crate::report::{CheckResult, Outcome};
use crate::tensors::mean_time;
use crate::{install, models};

/// Floats of a tensor of 8 MiB.
const LARGE: usize = 1 << 21;
const REQUESTS: usize = 40;
const CLIENTS: usize = 4;
/// Part of the shorter of both times that must be hidden behind the longer one.
const HIDDEN: f64 = 0.3;

pub fn run(_: &Driver, _: &Options) -> CheckResult {
    let group = "kind: KIND_GPU gpus: 0";
    let server = install::server()
        .model("copy", models::add("copy", group, &[]))
        .model("spin", models::add("spin", group, &[("spin_us", "3000")]))
        .start();
    let time = |model: &str, n: usize| {
        mean_time(server.http(), model, n, CLIENTS, 2)?;
        mean_time(server.http(), model, n, CLIENTS, REQUESTS / CLIENTS)
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
    if hidden >= HIDDEN { Ok(Outcome::Pass(figures)) } else { Err(figures) }
}
