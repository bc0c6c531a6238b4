//! A trace of strace: which calls leave the places of the server.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use trtserver_tests::{TIMEOUT, say};

/// Calls that make, change or open files, and those that send to an address. A `?` stands before
/// those that not every architecture has.
const CALLS: &str = "?open,openat,?openat2,?creat,?mkdir,mkdirat,?mknod,mknodat,?rename,?renameat,renameat2,?link,linkat,\
                     ?symlink,symlinkat,truncate,connect,sendto,sendmsg,sendmmsg";

/// Files that only a process reads that asks for the address of a name.
const RESOLVER: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"];

/// Where the server and the libraries write: the process itself, and shared memory by the server's
/// names.
const OWN: [&str; 5] =
    ["/dev/null", "/dev/shm/trtserver_", "/proc/self/", "/proc/thread-self/", "pipe:"];

/// A file of its folder for each thread.
pub struct Trace {
    folder: PathBuf,
}

impl Trace {
    /// `None` without strace, of which the reader is told.
    pub fn new(folder: &Path) -> Option<Self> {
        let mut strace = Command::new("strace");
        let silent = strace.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        let found = silent.status().is_ok_and(|status| status.success());
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(found || !ci, "no strace (Debian and Ubuntu: apt install strace)");
        if !found {
            say("SKIPPED in part: system calls are not looked at, since strace is not installed");
        }
        found.then(|| Self { folder: folder.to_owned() })
    }

    /// The words before a command line.
    pub fn command(&self) -> Vec<OsString> {
        let calls = format!("trace={CALLS}");
        let words = ["strace", "-D", "-ff", "-y", "-q", "-s256", "--seccomp-bpf", "-e"];
        let mut line: Vec<OsString> = words.map(OsString::from).into();
        line.extend([calls.into(), "-o".into(), self.folder.join("thread").into_os_string()]);
        line
    }

    /// What left the places of the server, which are those in [`OWN`] and `places`, beginnings of
    /// paths. Waits for the end of the trace, which must show that `library` was opened.
    pub fn findings(&self, places: &[PathBuf], library: &str) -> Vec<String> {
        let threads = self.whole();
        let calls = threads.iter().flat_map(|text| text.lines());
        let opened = threads.iter().any(|text| text.contains(library));
        assert!(opened, "the trace does not show that {library} was opened");
        calls.filter(|call| leaves(call, places)).map(str::to_owned).collect()
    }

    /// The texts of all threads, which are complete a moment after the end of the process.
    fn whole(&self) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let files = fs::read_dir(&self.folder).unwrap();
            let texts: Vec<String> = files
                .map(|file| fs::read(file.unwrap().path()).unwrap())
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .collect();
            let has_ended = |text: &String| {
                text.ends_with(" +++\n")
                    && text.lines().last().is_some_and(|last| last.starts_with("+++ "))
            };
            if !texts.is_empty() && texts.iter().all(has_ended) {
                return texts;
            }
            assert!(begin.elapsed() < TIMEOUT, "the trace in {} has no end", self.folder.display());
            trtserver_tests::pause_since(begin);
        }
    }
}

/// Whether a call sends to an address, asks for a name, or has written outside.
fn leaves(call: &str, places: &[PathBuf]) -> bool {
    let Some((name, arguments)) = call.split_once('(') else { return false };
    if name == "connect" || name.starts_with("send") {
        // Without an address: over a connection that a client has opened, or to a child.
        return arguments.contains("sa_family=") && !arguments.contains("sa_family=AF_UNSPEC");
    }
    let paths = paths(arguments);
    if paths.iter().any(|path| RESOLVER.iter().any(|file| path == file)) {
        return true;
    }
    let reads = name.starts_with("open")
        && !["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| arguments.contains(flag));
    let failed = arguments.rsplit_once(") = ").is_some_and(|(_, result)| result.starts_with('-'));
    let is_own = |path: &String| {
        let begins = |place: &PathBuf| path.starts_with(&*place.to_string_lossy());
        OWN.iter().any(|own| path.starts_with(own)) || places.iter().any(begins)
    };
    !reads && !failed && !paths.iter().all(is_own)
}

/// The paths of a call: each quoted one, behind that of the descriptor before it unless it is
/// absolute.
fn paths(arguments: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pieces = arguments.split('"');
    let mut before = pieces.next().unwrap_or_default();
    while let (Some(quoted), Some(after)) = (pieces.next(), pieces.next()) {
        let folder = before.rsplit_once('<').and_then(|(_, folder)| folder.split_once('>'));
        found.push(match folder {
            Some((folder, _)) if !quoted.starts_with('/') => format!("{folder}/{quoted}"),
            _ => quoted.to_owned(),
        });
        before = after;
    }
    found
}

#[test]
fn calls_that_leave_are_found() {
    let places = [PathBuf::from("/r/models")];
    for (call, expected) in [
        (
            r#"openat(AT_FDCWD</w>, "/home/u/.cache/x.db", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3</x>"#,
            true,
        ),
        (r#"openat(AT_FDCWD</w>, "x.db", O_WRONLY|O_CREAT, 0644) = 3</w/x.db>"#, true),
        (
            r#"openat(6</home/u>, "id.tmp", O_WRONLY|O_CREAT|O_EXCL, 0600) = 7</home/u/id.tmp>"#,
            true,
        ),
        (r#"mkdir("/home/u/.cache", 0700) = 0"#, true),
        (r#"renameat2(6</r/models>, "a", 7</home/u>, "b", 0) = 0"#, true),
        (r#"rename("/r/models/a", "/r/models/b") = 0"#, false),
        (r#"mkdir("/home/u/.cache", 0700) = -1 EEXIST (File exists)"#, false),
        (
            r#"openat(AT_FDCWD</w>, "/dev/nvidiactl", O_RDWR) = -1 ENOENT (No such file or directory)"#,
            false,
        ),
        (r#"openat(AT_FDCWD</w>, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3</etc/passwd>"#, false),
        (
            r#"openat(AT_FDCWD</w>, "/etc/resolv.conf", O_RDONLY|O_CLOEXEC) = 3</etc/resolv.conf>"#,
            true,
        ),
        (r#"openat(AT_FDCWD</w>, "/dev/null", O_RDWR) = 3</dev/null>"#, false),
        (r#"openat(AT_FDCWD</w>, "/proc/self/oom_score_adj", O_WRONLY|O_CREAT) = 3"#, false),
        (r#"connect(9<socket:[1]>, {sa_family=AF_INET, sin_port=htons(53)}, 16) = 0"#, true),
        (
            r#"connect(9<socket:[1]>, {sa_family=AF_UNIX, sun_path="/run/nscd/socket"}, 110) = -1 ENOENT"#,
            true,
        ),
        (
            r#"sendto(9<UDP:[1]>, "\1\0", 2, 0, {sa_family=AF_INET6, sin6_port=htons(53)}, 28) = 2"#,
            true,
        ),
        (r#"sendto(9<TCP:[1]>, "HTTP/1.1", 8, MSG_NOSIGNAL, NULL, 0) = 8"#, false),
        (r#"sendmsg(9<UNIX:[1]>, {msg_name=NULL, msg_namelen=0, msg_iovlen=1}, 0) = 8"#, false),
        ("+++ exited with 0 +++", false),
    ] {
        assert_eq!(leaves(call, &places), expected, "{call}");
    }
}
