//! Unit tests of `search.rs`.

use super::*;

static ONNX: Framework = Framework {
    name: "ONNX Runtime",
    backend: "onnxruntime",
    setting: SETTING,
    variable: "TEST_LIBRARY",
    files: &["libonnxruntime.so"],
    system: &["libonnxruntime.so.1", "libonnxruntime.so"],
    packages: &["onnxruntime/capi"],
    advice: "`pip install onnxruntime`",
};

fn refuse(path: &Path) -> Result<(), String> {
    load_library(path).map(drop)
}

#[test]
fn a_named_library_is_the_only_candidate() {
    let dir = Path::new("/opt/x/backends/onnxruntime");
    let both = ONNX.plan(Some("/a.so"), Some(OsStr::new("/b.so")), dir);
    assert!(
        matches!(both, SearchPlan::Named { path, by } if path == Path::new("/a.so") && by.contains("library="))
    );
    let environment = ONNX.plan(Some(""), Some(OsStr::new("/b.so")), dir);
    assert!(
        matches!(environment, SearchPlan::Named { path, by } if path == Path::new("/b.so") && by.contains("TEST_LIBRARY"))
    );
    let plan = ONNX.plan(Some("/nowhere/x.so"), None, Path::new("/nowhere"));
    let text = ONNX.open(plan, refuse).unwrap_err().text;
    assert!(text.starts_with("ONNX Runtime library '/nowhere/x.so' (named by --backend-config"));
    assert!(text.contains("pip install onnxruntime"), "{text}");
}

#[test]
fn search_starts_at_plugin_directory() {
    for dir in ["/nowhere/dist/backends/onnxruntime", "/nowhere/dist/backends/onnxruntime/1.2"] {
        let SearchPlan::Search { found, looked_in, system } =
            ONNX.plan(None, Some(OsStr::new("")), Path::new(dir))
        else {
            panic!("a library was named");
        };
        assert!(found.is_empty());
        let lib = format!("{dir}/lib");
        assert_eq!(looked_in, [dir, &lib, "/nowhere/dist/lib"].map(PathBuf::from));
        assert_eq!(system, ONNX.system);
    }
}

#[test]
fn installation_as_python_package_has_libraries_of_its_neighbours() {
    let site = "/nowhere/lib/python3.11/site-packages";
    let dir = format!("{site}/trtserver/backends/onnxruntime");
    let SearchPlan::Search { looked_in, .. } = ONNX.plan(None, None, Path::new(&dir)) else {
        panic!("a library was named");
    };
    let beside = [dir.clone(), format!("{dir}/lib"), format!("{site}/trtserver/lib")];
    let package = format!("{site}/onnxruntime/capi");
    assert_eq!(
        looked_in,
        beside.into_iter().chain([package]).map(PathBuf::from).collect::<Vec<_>>()
    );
}

#[test]
fn soname_before_link_before_highest_version() {
    let two = Framework { files: &["liba.so", "libb.so"], ..ONNX };
    let mut names =
        vec!["libb.so.2", "liba.so.1.9.0", "liba.so", "liba.so.1.31.1", "liba.so.1", "libb.so"];
    names.sort_by_key(|name| std::cmp::Reverse(two.preference(name)));
    let best = ["liba.so.1", "liba.so", "liba.so.1.31.1", "liba.so.1.9.0", "libb.so.2", "libb.so"];
    assert_eq!(names, best);
    for other in ["liba_providers_shared.so", "liba.so.bak", "libc.so"] {
        assert_eq!(two.preference(other), None);
    }
}

#[test]
fn failed_search_lists_directories_and_reasons() {
    let root = std::env::temp_dir().join(format!("framework-search-{}", std::process::id()));
    let (dir, lib) = (root.join("backends/onnxruntime"), root.join("lib"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join("libonnxruntime.so.1"), "no library").unwrap();
    std::fs::write(dir.join("libonnxruntime_providers_shared.so"), "another one").unwrap();
    let SearchPlan::Search { found, looked_in, .. } = ONNX.plan(None, None, &dir) else {
        panic!("a library was named");
    };
    assert_eq!(found, [lib.join("libonnxruntime.so.1")]);
    let plan = SearchPlan::Search { found, looked_in, system: vec!["libnowhere.so"] };
    let text = ONNX.open(plan, refuse).unwrap_err().text;
    let named = ONNX.plan(lib.to_str(), None, &dir);
    let in_directory = ONNX.open(named, refuse).unwrap_err().text;
    let named = ONNX.plan(dir.to_str(), None, &dir);
    let empty = ONNX.open(named, refuse).unwrap_err().text;
    std::fs::remove_dir_all(&root).unwrap();
    assert!(text.contains(&format!("\n  {}\n  {}", dir.display(), dir.join("lib").display())));
    assert!(text.contains("unusable: ") && !text.contains("unusable: libnowhere"), "{text}");
    for text in [&text, &in_directory] {
        assert!(text.contains("lib/libonnxruntime.so.1: "), "{text}");
    }
    for part in ["pip install onnxruntime", "--backend-config=onnxruntime,library=", "TEST_LIBRARY"]
    {
        assert!(text.contains(part), "{part} missing in {text}");
    }
    assert!(empty.contains("the directory contains no libonnxruntime.so*"), "{empty}");
}
