//! The dynamic loader's messages. `tests/wire/frameworks/pytorch.rs` opens compiled models.

use super::*;

#[test]
fn messages_say_what_to_do() {
    let path = Path::new("/tmp/x/model.so");
    for (reason, part) in [
        ("/tmp/x/model.so: undefined symbol: aoti_torch_cpu_gone", "another release of torch"),
        ("/tmp/x/model.so: undefined symbol: _ZN2at5printE", "C++ functions"),
        ("/tmp/x/model.so: failed to map segment from shared object", "TMPDIR"),
        ("libx.so: cannot open shared object file: No such file", "install the library"),
        ("something else", "cannot be opened"),
    ] {
        let text = explain_open(reason, path);
        assert!(text.contains(part) && !text.contains("/tmp/x"), "{text}");
    }
}
