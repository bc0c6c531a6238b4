//! Unit tests of `dynamic.rs`.

use super::*;
use std::process::Command;

#[test]
fn symbols_of_the_standard_library_are_recognised() {
    for name in [
        "_ZZNSt19_Sp_make_shared_tag5_S_tiEvE5__tag",
        "_ZNSs4_Rep20_S_empty_rep_storageE",
        "_ZGVZNKSt8__detail1fEvE1x",
        "_ZN9__gnu_cxx1xE",
    ] {
        assert!(is_standard(name), "{name}");
    }
    for name in ["_ZZN1SIiE1vEvE1x", "_ZN3fmt1xE", "plain", "_Z5StartE"] {
        assert!(!is_standard(name), "{name}");
    }
}

#[test]
fn exports_are_the_same_with_either_hash_table() {
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("a.cc"), dir.path().join("a.so"));
    let code = "template <int> struct S { static inline int unique = 1; };
        int *use() { return &S<1>::unique; }
        extern \"C\" {
            int printf(const char *, ...);
            int exported(void) { return printf(\"\"); }
            __attribute__((visibility(\"hidden\"))) int hidden(void) { return 1; }
            __attribute__((visibility(\"protected\"))) int guarded(void) { return hidden(); }
            __attribute__((weak)) int weak = 3;
        }
        static int local = 2;
        extern \"C\" int *address(void) { return &local; }";
    std::fs::write(&source, code).unwrap();
    for style in ["gnu", "sysv"] {
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        compiler.arg(format!("-Wl,--hash-style={style}"));
        assert!(compiler.status().unwrap().success());
        let unique = "_ZN1SILi1EE6uniqueE";
        let expected = ["_Z3usev", unique, "address", "exported", "guarded", "weak"];
        assert_eq!(read_exports(&library).unwrap(), expected, "{style}");
        assert_eq!(DynamicSection::read(&library).unwrap().unique, [unique], "{style}");
    }
    let error = read_exports(&source).unwrap_err().to_string();
    assert_eq!(error, "its tables are damaged");
}
