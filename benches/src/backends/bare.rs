//! A plugin beside the bare library that it opens: one model through host and plugin in this
//! process, and the same calls of the library's C interface in a small C program. One thread, CPU
//! time.

use super::shim::{InProcessCase, InProcessModel, compile, in_this_process};
use crate::Result;
use crate::options::Options;
use crate::repository::empty;
use crate::schedulers::cpu::process_cpu;
use crate::table::{median, spread, verdict};
use bytes::Bytes;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use trtserver_proto::v2::ModelConfig;

/// The columns after the row's name.
pub const COLUMNS: [&str; 7] =
    ["us CPU a call", "C API", "added us", "ratio", "spread", "target", ""];

/// What a row has to hold.
#[derive(Clone, Copy)]
pub enum BareTarget {
    /// Microseconds of CPU time that plugin and host add to a call.
    Added(f64),
    /// Share of the bare library's speed.
    Ratio(f64),
}

pub struct BareCase<'a> {
    /// A C program: `PROGRAM [ARGUMENTS] LIBRARY MODEL INPUT OUTPUT ROUNDS` writes the bytes of the
    /// output and prints the nanoseconds of a call.
    pub program: &'static str,
    /// Arguments before that of the library.
    pub arguments: &'a [&'a str],
    pub library: &'a Path,
    /// Files of the version, the model's first.
    pub files: &'a [PathBuf],
    /// With the name of the first file as that of the model.
    pub config: ModelConfig,
    pub shape: Vec<i64>,
    pub data: Bytes,
    pub target: BareTarget,
}

impl BareCase<'_> {
    /// The cells of a row. Every response of the plugin has to be that of the library.
    pub fn measure(&self, options: &Options) -> Result<Vec<String>> {
        let folder = empty()?;
        let bare = self.compile(folder.path())?;
        let first = bare.call(10)?;
        let rounds = (options.pass.as_micros() as f64 / first).max(10.0) as usize;
        let expected =
            fs::read(&bare.output).map_err(|e| format!("{}: {e}", bare.output.display()))?;
        let backends = in_this_process(options)?;
        let mut config = self.config.clone();
        config.default_model_filename = file_name(&self.files[0]).display().to_string();
        let case = InProcessCase {
            config,
            dir: folder.path(),
            shape: self.shape.clone(),
            expected: Some(Bytes::from(expected)),
            threads: 1,
        };
        let mut served = InProcessModel::open(&backends, case)?;
        let (mut direct_us, mut served_us) = (Vec::new(), Vec::new());
        for _ in 0..2 * options.passes {
            direct_us.push(bare.call(rounds)?);
            served_us.push(pass(&mut served, options, &self.data)?);
        }
        let (own, bare) = (median(&served_us), median(&direct_us));
        let (added, ratio) = (own - bare, bare / own);
        let (target, met) = match self.target {
            BareTarget::Added(most) => (format!("<={most:.0} us"), added <= most),
            BareTarget::Ratio(least) => (format!(">={least}"), ratio >= least),
        };
        Ok(vec![
            format!("{own:.1}"),
            format!("{bare:.1}"),
            format!("{added:.1}"),
            format!("{ratio:.2}"),
            format!("{:.0} %", spread(&served_us) * 100.0),
            target,
            verdict(met).to_owned(),
        ])
    }

    fn compile(&self, folder: &Path) -> Result<BareLibrary> {
        let wrap = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        let version = folder.join("1");
        fs::create_dir(&version).map_err(|e| wrap(&version, e))?;
        for file in self.files {
            fs::copy(file, version.join(file_name(file))).map_err(|e| wrap(file, e))?;
        }
        let (source, direct) = (folder.join("direct.c"), folder.join("direct"));
        fs::write(&source, self.program).map_err(|e| wrap(&source, e))?;
        compile(folder, &["direct.c", "-ldl", "-o"], &direct)?;
        let (input, output) = (folder.join("input"), folder.join("output"));
        fs::write(&input, &self.data).map_err(|e| wrap(&input, e))?;
        let own = self.arguments.iter().map(OsStr::new);
        let paths = [self.library, &self.files[0], &input, &output].map(Path::as_os_str);
        let arguments = own.chain(paths).map(OsStr::to_owned).collect();
        Ok(BareLibrary { direct, arguments, output })
    }
}

fn file_name(path: &Path) -> &Path {
    Path::new(path.file_name().unwrap_or_default())
}

/// The compiled program.
struct BareLibrary {
    direct: PathBuf,
    arguments: Vec<std::ffi::OsString>,
    output: PathBuf,
}

impl BareLibrary {
    /// Microseconds of CPU time per call.
    fn call(&self, rounds: usize) -> Result<f64> {
        let mut command = Command::new(&self.direct);
        let done = command.args(&self.arguments).arg(rounds.to_string()).output();
        let done = done.map_err(|e| format!("{}: {e}", self.direct.display()))?;
        let text = String::from_utf8_lossy(&done.stdout);
        let ns: f64 =
            text.trim().parse().map_err(|_| String::from_utf8_lossy(&done.stderr).into_owned())?;
        Ok(ns / 1000.0)
    }
}

/// Microseconds of CPU time per call.
fn pass(model: &mut InProcessModel, options: &Options, data: &Bytes) -> Result<f64> {
    let (begin, cpu, before) = (Instant::now(), process_cpu(), model.right());
    let mut calls = 0;
    while begin.elapsed() < options.pass {
        for _ in 0..10 {
            model.call(data)?;
        }
        calls += 10;
    }
    let spent = process_cpu().saturating_sub(cpu);
    match model.right() - before {
        right if right == calls => Ok(spent.as_secs_f64() * 1e6 / calls as f64),
        right => Err(format!("{right} of {calls} responses are correct")),
    }
}
