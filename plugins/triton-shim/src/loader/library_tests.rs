//! Unit tests of `library.rs`.

use super::*;

#[test]
fn undefined_functions_are_explained() {
    let needed = ["libc.so.6".to_owned(), "libm.so.6".to_owned()];
    let reason = |message: &str, needed: &[String]| undefined_reason(message, needed);
    let at = "/b/libtriton_x.so: undefined symbol: ";
    let newer = reason(&format!("{at}TRITONBACKEND_FromTheFuture"), &needed);
    assert!(newer.contains("built for a newer interface"), "{newer}");
    for symbol in ["TRITONSERVER_ErrorNew", "TRITONBACKEND_ModelName, version V"] {
        let linked = reason(&format!("{at}{symbol}"), &needed);
        assert!(
            linked.contains("without libtritonserver.so, only with: libc.so.6, libm.so.6"),
            "{linked}"
        );
        assert!(linked.contains("patchelf --add-needed libtritonserver.so FILE"), "{linked}");
    }
    assert!(reason(&format!("{at}TRITONSERVER_ErrorNew"), &[]).contains("only with: nothing"));
    assert_eq!(reason(&format!("{at}cudaMalloc"), &needed), "");
    assert_eq!(reason("file too short", &needed), "");
}
