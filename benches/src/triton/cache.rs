//! The response caches of both servers, each beside the same server without a cache, with the same
//! backend written in C.
//!
//! Requests that are never found: here responses expire after a millisecond; Triton's cache is too
//! small for all of them, and forgets the oldest first.

use super::install;
use super::server::Triton;
use crate::Result;
use crate::cores::Cores;
use crate::load::{self, Target};
use crate::options::Options;
use crate::pairs::{self, Pairs};
use crate::process::Process;
use crate::repository;
use crate::requests::Work;
use crate::response_cache::{Row, rows};
use crate::table::{Table, verdict};
use std::path::Path;

pub const COLUMNS: &[&str] = &[
    "cache beside Triton",
    "CPU µs/req",
    "without",
    "ratio",
    "of Triton",
    "without",
    "ratio",
    "of both",
    "spread",
    "target",
    "",
];

/// Largest CPU time of a request with the cache, relative to Triton's.
const CPU: f64 = 1.0;

/// Both servers without a cache.
struct Plain {
    ours: Process,
    triton: Triton,
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let rows = rows(|row| options.wants(&format!("triton {}", row.name())));
    if rows.is_empty() {
        return Ok(());
    }
    let (caches, libraries) = (install::caches(options)?, install::backends(options)?);
    let models = repository::empty()?;
    let config = format!("{}response_cache {{ enable: true }}\n", super::beside::IDENTITY);
    repository::model(models.path(), "identity", &config)?;
    let cores = Cores::share()?;
    let ours = |flags: &[&str]| {
        let backends = format!("--backend-directory={}", libraries.path().display());
        let flags = [&[&*backends], flags].concat();
        cores.as_server(|| Process::server_with(options, models.path(), &flags))
    };
    let triton = |flags: &[String]| {
        let (models, libraries) = (models.path(), libraries.path());
        let work = Work::Identity(64);
        cores.as_server(|| Triton::start(options, models, libraries, flags, work))
    };
    let plain = Plain { ours: ours(&[])?, triton: triton(&[])? };
    for row in rows {
        let (with, beside) = (ours(&row.flags())?, triton(&triton_flags(&row, &caches))?);
        let cells = cores.as_load(|| one(options, &row, &plain, &with, &beside));
        table.measured(format!("triton {}", row.name()), cells);
    }
    Ok(())
}

/// Its cache holds some of the unequal requests, and none until it comes again.
fn triton_flags(row: &Row, caches: &Path) -> [String; 2] {
    let size = match row.unequal {
        None => 256 << 20,
        Some(count) => (count * (row.bytes + 512) / 3).max(16 << 10),
    };
    [format!("--cache-config=local,size={size}"), format!("--cache-directory={}", caches.display())]
}

fn one(
    options: &Options,
    row: &Row,
    plain: &Plain,
    with: &Process,
    beside: &Triton,
) -> Result<Vec<String>> {
    let requests = row.requests();
    let wire = row.frontend.wire();
    let pass = |target: &Target, length| load::at(target, wire, &requests, row.at_once, length);
    let measured = |with: &Target, without: &Target| {
        pairs::run(options, |length| pass(with, length), |length| pass(without, length))
    };
    let ours = measured(&with.target(), &plain.ours.target())?;
    let triton = measured(&beside.target, &plain.triton.target)?;
    let cpu = |pairs: &Pairs| pairs.both(|pass| pass.cpu_us);
    let ratio = |pairs: &Pairs| format!("{:.3}", pairs.ratio(|pass| pass.cpu_us));
    let of_both = cpu(&ours).0 / cpu(&triton).0;
    Ok(vec![
        format!("{:.2}", cpu(&ours).0),
        format!("{:.2}", cpu(&ours).1),
        ratio(&ours),
        format!("{:.2}", cpu(&triton).0),
        format!("{:.2}", cpu(&triton).1),
        ratio(&triton),
        format!("{of_both:.2}"),
        ours.spread(|pass| pass.cpu_us),
        format!("of both <={CPU}"),
        verdict(of_both <= CPU).to_owned(),
    ])
}
