//! `cargo xtask`: development tasks of this repository. This file lists the commands.

mod api_test;
mod apt;
mod azurite;
mod bench;
mod build;
mod client_library;
mod client_programs;
mod command;
mod demo;
mod demonstrate;
mod deny;
mod deploy;
mod docs;
mod failures;
mod fuzz;
mod gate;
mod gpu_test;
mod package;
mod page_test;
mod paths;
mod perf_analyzer;
mod pip;
mod program_wheel;
mod python;
mod release_check;
mod runtimes;
mod sdk;
mod soak;
mod strip;
mod test;
mod tidy;
mod tools;
mod wheel;
mod wheel_file;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use command::Result;
use paths::Paths;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Accepts `cargo xtask demo -- --once` as well as `cargo xtask demo --once`.
    let matches = cli().get_matches_from(std::env::args_os().filter(|argument| argument != "--"));
    match run(&Paths::find(), &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments for the program that a task runs.
fn passed_on(with: &ArgMatches) -> Vec<String> {
    with.get_many("arguments").unwrap_or_default().cloned().collect()
}

fn run(paths: &Paths, matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("demo", with)) => demo::demo(
            paths,
            &demo::Options {
                once: with.get_flag("once"),
                debug: with.get_flag("debug"),
                http_port: with.get_one("http-port").copied(),
                grpc_port: with.get_one("grpc-port").copied(),
                metrics_port: with.get_one("metrics-port").copied(),
            },
        ),
        Some(("test", with)) => {
            let names = |flag| with.get_many(flag).unwrap_or_default().cloned().collect();
            test::test(paths, &test::Options { only: names("only"), without: names("without") })
        }
        Some(("bench", with)) => bench::bench(paths, with.get_flag("no-build"), &passed_on(with)),
        Some(("gate", with)) => gate::gate(paths, &passed_on(with)).map(|_| ()),
        Some(("fuzz", with)) => {
            let targets = with.get_many("targets").unwrap_or_default().cloned().collect();
            let seconds = with.get_one("seconds").copied().unwrap_or(600);
            fuzz::fuzz(paths, &fuzz::Options { targets, seconds })
        }
        Some(("gpu-test", with)) => {
            let (no_build, only_build) = (with.get_flag("no-build"), with.get_flag("only-build"));
            gpu_test::gpu_test(paths, no_build, only_build, &passed_on(with))
        }
        Some(("page-test", with)) => {
            let no_build = with.get_flag("no-build");
            match with.get_flag("boards") {
                true => page_test::boards_test(paths, no_build),
                false => page_test::page_test(paths, no_build, &passed_on(with)),
            }
        }
        Some(("api-test", with)) => {
            api_test::api_test(paths, with.get_flag("no-build"), &passed_on(with))
        }
        Some(("docs", _)) => docs::docs(paths),
        Some(("soak", with)) => soak::soak(paths, &passed_on(with)),
        Some(("deploy", with)) => {
            let dist = build::build(paths, true)?;
            match (with.get_flag("proxies"), with.get_flag("ray")) {
                (true, _) => deploy::try_proxies(paths, &dist),
                (_, true) => deploy::try_ray(paths, &dist),
                _ => deploy::check(paths, &dist),
            }
        }
        Some(("demonstrate", with)) => {
            demonstrate::demonstrate(paths, with.get_flag("no-build"), &passed_on(with))
        }
        Some(("build", with)) => build::build(paths, with.get_flag("debug")).map(|_| ()),
        Some(("package", with)) => {
            let names = |name: &str| with.get_many(name).unwrap_or_default().cloned().collect();
            let compared: Vec<String> = names("compare-builds");
            if !compared.is_empty() {
                return package::compare_builds(paths, &compared);
            }
            let directory = |name: &str| with.get_one::<PathBuf>(name).cloned();
            let options = package::PackageOptions {
                from: directory("from"),
                only: names("only"),
                into: directory("into"),
                frameworks: names("framework"),
                base: directory("base"),
                try_in: names("try-in"),
            };
            package::package(paths, &options)
        }
        Some(("release-check", _)) => release_check::release_check(paths),
        Some(("runtimes", with)) => {
            runtimes::fetch(paths)?;
            if with.get_flag("openvino") {
                runtimes::openvino::fetch(paths)?;
            }
            if with.get_flag("tensorflow") {
                runtimes::tensorflow::fetch(paths)?;
            }
            if with.get_flag("tensorrt") {
                runtimes::tensorrt::fetch(paths)?;
            }
            if with.get_flag("torch") {
                runtimes::torch::fetch(paths)?;
            }
            if with.get_flag("trees") {
                runtimes::trees::fetch(paths)?;
            }
            if with.get_flag("triton") {
                runtimes::triton::fetch(paths)?;
            }
            if with.get_flag("gpu") {
                runtimes::onnxruntime_gpu::fetch(paths)?;
            }
            // The debug install has links to what is here.
            if paths.dist(true).exists() {
                build::share_lib(paths, &paths.dist(true))
            } else {
                Ok(())
            }
        }
        Some(("python", _)) => python::environment(paths, &python::V1)
            .and_then(|_| python::environment(paths, &python::V2))
            .and_then(|_| python::environment(paths, &python::KSERVE))
            .and_then(|_| python::environment(paths, &python::S3))
            .and_then(|_| python::environment(paths, &python::BUILD))
            .and_then(|_| azurite::install(paths))
            .and_then(|_| perf_analyzer::install(paths)),
        // clap refuses other commands.
        _ => Ok(()),
    }
}

fn cli() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let arguments = |help: &'static str| {
        Arg::new("arguments")
            .value_name("ARGUMENT")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .help(help)
    };
    let directory = |name: &'static str, help: &'static str| {
        let parser = value_parser!(PathBuf);
        Arg::new(name).long(name).value_name("DIR").value_parser(parser).help(help)
    };
    let choices =
        |name: &'static str, value: &'static str, values: &[&'static str], help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name(value)
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(values))
                .help(format!("{help} (repeatable)"))
        };
    let port = |name: &'static str, default: &str| {
        Arg::new(name)
            .long(name)
            .value_name("PORT")
            .value_parser(value_parser!(u16))
            .help(format!("Port to use [default: {default}, or a free port if it is in use]"))
    };
    Command::new("cargo xtask")
        .bin_name("cargo xtask")
        .about("Development tasks of the trtserver repository")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("demo")
                .about("Build, serve examples/models, and classify example pictures")
                .arg(flag("once", "Exit after the classification; fail if a result is wrong or missing"))
                .arg(flag("debug", "Use the install of `cargo xtask build --debug`"))
                .arg(port("http-port", "8000"))
                .arg(port("grpc-port", "8001"))
                .arg(port("metrics-port", "8002")),
        )
        .subcommand(
            Command::new("test")
                .about("Run all checks and tests, as CI does")
                .arg(
                    Arg::new("only")
                        .long("only")
                        .value_name("STEP")
                        .action(ArgAction::Append)
                        .value_parser(PossibleValuesParser::new(test::step_names()))
                        .help("Run only this step (repeatable)"),
                )
                .arg(
                    Arg::new("without")
                        .long("without")
                        .value_name("RUNTIME")
                        .action(ArgAction::Append)
                        .value_parser(PossibleValuesParser::new(test::LEAVE_OUT))
                        .help("Leave out this framework's files (506 MB, 94 MB, 55 MB) and the tests that need them"),
                ),
        )
        .subcommand(
            Command::new("bench")
                .about("Build the release server and run the benchmarks")
                .arg(flag("no-build", "Use the last build"))
                .arg(arguments("Arguments for trtserver-bench, such as --quick; --help lists them")),
        )
        .subcommand(
            Command::new("gate")
                .about("Count allocations, copies, system calls and instructions per request; compare with ceilings")
                .arg(arguments("Arguments for trtserver-gate: --ceilings prints a table of new ceilings")),
        )
        .subcommand(
            Command::new("gpu-test")
                .about("Run the checks that need a GPU; without one, say so and succeed")
                .arg(flag("no-build", "Use the last build"))
                .arg(flag("only-build", "Put everything into target/dist, to be run on another machine"))
                .arg(arguments("Arguments for trtserver-gpu-test: names of checks, --list, --requests N")),
        )
        .subcommand(
            Command::new("page-test")
                .about("Test the status page in headless Chromium, which apt installs if this runs as root")
                .arg(flag("no-build", "Use the last debug build"))
                .arg(flag("boards", "Test the rules and the board in deploy/ with Prometheus instead"))
                .arg(arguments("Arguments for tests/page/page_test.py")),
        )
        .subcommand(
            Command::new("api-test")
                .about("Test the HTTP endpoints with schemathesis, by the server's own description of them")
                .arg(flag("no-build", "Use the last debug build"))
                .arg(arguments("Arguments for tests/api/api_test.py, and through it for schemathesis")),
        )
        .subcommand(Command::new("docs").about(
            "Build the book of docs/ and the references of the C headers, Rust crates and Python packages, and check their links",
        ))
        .subcommand(
            Command::new("fuzz")
                .about("Build the fuzz targets for libFuzzer with AddressSanitizer and run each")
                .arg(
                    Arg::new("seconds")
                        .long("seconds")
                        .value_name("N")
                        .value_parser(value_parser!(u64))
                        .help("Time for each target [default: 600]"),
                )
                .arg(
                    Arg::new("targets")
                        .value_name("TARGET")
                        .num_args(0..)
                        .help("Names from fuzz/fuzz_targets [default: all]"),
                ),
        )
        .subcommand(
            Command::new("soak")
                .about(
                    "Soak test: a million requests to eight models, with every batcher and many cancellations",
                )
                .arg(arguments("Arguments for the soak test: --requests N")),
        )
        .subcommand(
            Command::new("deploy")
                .about("Check the files of deploy/ and execute their start lines")
                .arg(flag("proxies", "Run haproxy and nginx in front of three servers instead"))
                .arg(flag("ray", "Run Ray Serve with two replicas instead (100 MB from PyPI)").conflicts_with("proxies")),
        )
        .subcommand(
            Command::new("demonstrate")
                .about("Run several servers behind Envoy: weights from load reports, a killed server, an autoscaler, sequences, a bad network")
                .arg(flag("no-build", "Use the last debug build"))
                .arg(arguments("Names of demonstrations [default: all], and --short; deploy/README.md lists them")),
        )
        .subcommand(
            Command::new("build")
                .about("Build the server, its backends and the client into target/dist")
                .arg(flag("debug", "Build without optimisation into target/dist-debug, with the test backends")),
        )
        .subcommand(
            Command::new("package")
                .about("Build the packages for users into target/package: a Python wheel with the server, an archive, a Debian package, a container image")
                .arg(choices("only", "KIND", &package::KINDS, "Make only this package"))
                .arg(choices("framework", "NAME", &package::FRAMEWORKS, "Make an image with this framework's library as well"))
                .arg(choices("try-in", "SUITE", &package::SUITE_NAMES, "Install the packages in this Debian and ask a model; as root"))
                .arg(choices("compare-builds", "CRATE", &package::package_names(), "Instead: compile this crate, or `all`, twice in two directories, and compare the bytes"))
                .arg(directory("base", "Lowest layer of the image, instead of a Debian made by debootstrap"))
                .arg(directory("from", "Pack this install, for machines like this one, instead of a release for old systems"))
                .arg(directory("into", "Put the packages here [default: target/package]")),
        )
        .subcommand(
            Command::new("release-check")
                .about("Say what is missing before this version can be tagged and published"),
        )
        .subcommand(
            Command::new("runtimes")
                .about("Download ONNX Runtime (pinned version) into target/dist/lib")
                .arg(flag(
                    "openvino",
                    "Download OpenVINO as well (59 MB) into the user's cache",
                ))
                .arg(flag(
                    "tensorflow",
                    "Download TensorFlow as well (two releases, 506 MB) into the user's cache",
                ))
                .arg(flag(
                    "tensorrt",
                    "Download TensorRT's lean runtime as well (two releases, 94 MB) into the user's cache",
                ))
                .arg(flag(
                    "torch",
                    "Download PyTorch's library for the CPU as well (554 MB) into the user's cache",
                ))
                .arg(flag(
                    "trees",
                    "Download LightGBM and XGBoost as well (9 MB) into the user's cache",
                ))
                .arg(flag(
                    "triton",
                    "Download Triton with its Python backend as well (55 MB) into the user's cache, and link it into target/triton",
                ))
                .arg(flag(
                    "gpu",
                    "Download ONNX Runtime for GPUs and CUDA's libraries as well (1520 MB) into the user's cache",
                )),
        )
        .subcommand(
            Command::new("python")
                .about("Create the Python environments of the tests in target/python, install Azurite and perf_analyzer in target, and Node.js in the user's cache"),
        )
}
