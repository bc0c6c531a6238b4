//! The client library for C and C++, clients/c: programs that use all of it, compiled against an
//! install.

use super::server;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use trtserver_proto::text;
use trtserver_proto::v1::ServerStatus;
use trtserver_tests::{Ended, Process, Running, TIMEOUT, build_tool, dist, folder, root, say};

/// For programs that load no models.
static SERVER: LazyLock<Running> = LazyLock::new(|| server().start_shared());

/// Options that find leaks and bad accesses, where the compiler has them.
static SANITIZER: LazyLock<Option<&str>> = LazyLock::new(|| {
    let dir = folder();
    let source = dir.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap_or_else(|e| panic!("{e}"));
    let option = "-fsanitize=address";
    let mut command = compiler("c11");
    command.arg(option).arg(&source).arg("-o").arg(dir.path().join("empty"));
    command.output().is_ok_and(|done| done.status.success()).then_some(option)
});

/// The compiler of the language that the standard belongs to.
fn compiler(standard: &str) -> Command {
    let (variable, usual) = if standard.contains("++") { ("CXX", "c++") } else { ("CC", "cc") };
    let mut command = Command::new(std::env::var_os(variable).unwrap_or_else(|| usual.into()));
    command.arg(format!("-std={standard}")).args(["-Wall", "-Wextra", "-Werror"]);
    command
}

/// Compiles files of tests/clients with one include folder and one library, as a program of a user.
fn compile(standard: &str, include: &str, sources: &[&str], to: &Path) {
    compile_with(*SANITIZER, standard, include, sources, to);
}

fn compile_with(option: Option<&str>, standard: &str, include: &str, sources: &[&str], to: &Path) {
    let dist = dist();
    let lib = dist.join("lib");
    let mut command = compiler(standard);
    command.arg("-I").arg(dist.join(include)).args(option);
    command.args(sources.iter().map(|source| root().join("tests/clients").join(source)));
    command.arg("-L").arg(&lib).arg("-ltrtserver_client").arg("-pthread");
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(&lib);
    run(command.arg(path).arg("-o").arg(to));
}

/// Compiles without linking.
fn check(standard: &str, include: &str, source: &str) {
    let mut command = compiler(standard);
    command.arg("-fsyntax-only").arg("-I").arg(dist().join(include));
    run(command.arg(root().join("tests/clients").join(source)));
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let [out, err] = [done.stdout, done.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    assert!(done.status.success(), "{command:?}\n{out}{err}");
    out.trim().to_owned()
}

/// Runs a program against the server; leaks make it fail.
fn against(server: &Running, program: &Path, more: &[&Path]) -> Ended {
    let mut command = Command::new(program);
    command.args([server.http(), server.grpc()]).args(more);
    command.env("ASAN_OPTIONS", "detect_leaks=1");
    let ended = Process::spawn(command).wait(TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
    ended
}

#[test]
fn c_program_with_every_call_finds_no_leak() {
    let dir = folder();
    let program = dir.path().join("client");
    compile("c11", "include", &["client.c"], &program);
    let picture = root().join("examples/digits/pictures/two.png");
    let ended = against(&server().start(), &program, &[&picture]);
    assert!(ended.stdout.contains("all checks passed"), "{ended:?}");
}

/// valgrind, which sees the accesses and leaks of the library itself.
fn valgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=99", "--leak-check=full"]);
    // What threads that still run at the end have reserved is "possibly lost".
    command
        .args(["--errors-for-leak-kinds=definite,indirect", "--show-leak-kinds=definite,indirect"]);
    let suppressed = root().join("tests/clients/valgrind.supp");
    command.arg(format!("--suppressions={}", suppressed.display()));
    command
}

/// Runs the program for TLS; leaks make it fail.
pub fn tls(arguments: &[String]) {
    let dir = folder();
    let program = dir.path().join("tls");
    compile("c11", "include", &["tls.c"], &program);
    let mut command = Command::new(program);
    command.args(arguments).env("ASAN_OPTIONS", "detect_leaks=1");
    let ended = Process::spawn(command).wait(TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
}

/// Compiles a program and runs it: under valgrind where it is installed, otherwise with the address
/// sanitizer.
fn run_checked(standard: &str, include: &str, sources: &[&str], arguments: &[&str]) -> Ended {
    let dir = folder();
    let program = dir.path().join("program");
    let (sanitizer, mut command) = match has_valgrind() {
        true => (None, valgrind()),
        false => (*SANITIZER, Command::new("env")),
    };
    compile_with(sanitizer, standard, include, sources, &program);
    command.arg(program).args(arguments).env("ASAN_OPTIONS", "detect_leaks=1");
    // valgrind takes about thirty times as long.
    let ended = Process::spawn(command).wait(5 * TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
    ended
}

/// Runs the calls to servers that misbehave.
pub fn bad_servers(cut: &str, servers: &[String]) {
    let arguments: Vec<_> = [cut].into_iter().chain(servers.iter().map(String::as_str)).collect();
    run_checked("c11", "include", &["bad_servers.c"], &arguments);
}

fn has_valgrind() -> bool {
    let found = Command::new("valgrind").arg("--version").output();
    let found = found.is_ok_and(|done| done.status.success());
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(found || !ci, "no valgrind (Debian and Ubuntu: apt install valgrind)");
    if !found {
        say(
            "SKIPPED the C library under valgrind, which is not installed; the address sanitizer checks it",
        );
    }
    found
}

#[test]
fn valgrind_finds_no_error_in_a_c_program_with_every_call() {
    if !has_valgrind() {
        return;
    }
    let server = server().start();
    let picture = root().join("examples/digits/pictures/two.png");
    let arguments = [server.http(), server.grpc(), picture.to_str().unwrap()];
    run_checked("c11", "include", &["client.c"], &arguments);
}

#[test]
fn cpp_program_of_trtis_1_11_uses_every_class() {
    check("c++17", "include/v1.11", "v1_11.cc");
    let server = server().start();
    let addresses = [server.http(), server.grpc()];
    let ended = run_checked("c++11", "include/v1.11", &["v1_11.cc", "flat.cc"], &addresses);
    // It printed the status as text, which is that of protobuf.
    let status: ServerStatus = text::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e}"));
    assert!(status.model_status.len() > 10, "{status:?}");
    assert!(status.model_status["addsub_int32"].version_status.contains_key(&1));
}

#[test]
fn cpp_program_of_trtis_0_12_asks_for_asynchronous_results() {
    check("c++11", "include/v0.12", "v0_12.cc");
    let dir = folder();
    let program = dir.path().join("v0_12");
    compile("c++17", "include/v0.12", &["v0_12.cc"], &program);
    against(&SERVER, &program, &[]);
}

/// A copy of the client library's files of the install.
fn moved_install(to: &Path) {
    let mut copy = Command::new("cp");
    let lib = dist().join("lib");
    for part in ["libtrtserver_client.so", "pkgconfig", "cmake"] {
        copy.arg(lib.join(part));
    }
    std::fs::create_dir_all(to.join("lib")).unwrap_or_else(|e| panic!("{e}"));
    run(copy.arg("-R").arg(to.join("lib")));
    run(Command::new("cp").arg("-R").arg(dist().join("include")).arg(to));
}

#[test]
fn pkg_config_finds_the_client_in_a_moved_install() {
    let dir = folder();
    let prefix = dir.path().join("prefix");
    moved_install(&prefix);
    let flags = |package| {
        let mut config = Command::new(build_tool("pkgconf"));
        config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        run(config.args(["--cflags", "--libs", package]))
    };
    let sources = root().join("tests/clients");
    let mut c = compiler("c11");
    c.arg("-o").arg(dir.path().join("program")).arg(sources.join("client.c")).arg("-pthread");
    run(c.args(flags("trtserver-client").split_whitespace()));
    let mut cpp = compiler("c++11");
    cpp.arg("-fsyntax-only").arg(sources.join("flat.cc"));
    run(cpp.args(flags("trtserver-client-v1.11").split_whitespace()));
    assert!(flags("trtserver-client-v0.12").contains("include/v0.12"));
}

#[test]
fn cmake_package_of_a_moved_install_builds_clients() {
    let dir = folder();
    let (prefix, build) = (dir.path().join("prefix"), dir.path().join("build"));
    moved_install(&prefix);
    let sources = root().join("tests/clients");
    let program = "#include \"src/clients/c++/request.h\"\nusing namespace nvidia::inferenceserver::client;\n\
                   int main() { return Error::Success.IsOk() && trtc_live_handles() == 0 ? 0 : 1; }\n";
    std::fs::write(dir.path().join("program.cc"), program).unwrap();
    std::fs::write(
        dir.path().join("CMakeLists.txt"),
        format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(p C CXX)\n\
             find_package(trtserver-client 0.1 REQUIRED)\nfind_package(Threads REQUIRED)\n\
             add_executable(c {0}/client.c)\ntarget_link_libraries(c trtserver::client Threads::Threads)\n\
             add_executable(cpp program.cc)\ntarget_link_libraries(cpp trtserver::client-v0.12)\n",
            sources.display()
        ),
    )
    .unwrap();
    let mut cmake = Command::new(build_tool("cmake"));
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())).args(["-G", "Ninja"]);
    cmake.arg(format!("-DCMAKE_MAKE_PROGRAM={}", build_tool("ninja").display()));
    run(cmake.arg("-S").arg(dir.path()).arg("-B").arg(&build));
    run(Command::new(build_tool("cmake")).arg("--build").arg(&build));
    run(&mut Command::new(build.join("cpp")));
}
