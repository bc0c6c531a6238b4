//! A fake torch, compiled from `tests/fakes/torch`, and packages of AOTInductor for it: what the
//! plugin `pytorch` needs, without the 900 MB of torch. Test doubles.

use crate::compile::{compile, folder};
use std::fmt::Write as _;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Where the compiled model and its code are in a package.
const MODEL: &str = "p/data/aotinductor/model/c1.wrapper";

/// The folder with `libtorch_cpu.so`. What compiled models are linked with besides is not there.
pub struct FakeTorch(TempDir);

impl FakeTorch {
    pub fn new() -> Self {
        let torch = Self(folder());
        compile("tests/fakes/torch/torch.c", &torch.library(), &soname("libtorch_cpu.so"));
        torch
    }

    /// The path of the library.
    pub fn library(&self) -> PathBuf {
        self.0.path().join("libtorch_cpu.so")
    }

    /// A compiled model; `options` for the compiler.
    pub fn model(&self, options: &[&str]) -> Vec<u8> {
        let build = folder();
        let stub = build.path().join("libtorch.so");
        compile("tests/fakes/torch/stub.c", &stub, &soname("libtorch.so"));
        let model = build.path().join("model.so");
        let mut all = vec!["-Wl,--no-as-needed".to_owned()];
        all.extend([&stub, &self.library()].map(|path| path.display().to_string()));
        all.extend(options.iter().map(|option| (*option).to_owned()));
        compile("tests/fakes/torch/model.c", &model, &all);
        read(&model)
    }

    /// A complete package with the usual model.
    pub fn package(&self) -> Vec<u8> {
        static MODEL: OnceLock<Vec<u8>> = OnceLock::new();
        let model = MODEL.get_or_init(|| self.model(&[]));
        package(model, &[(&format!("{}.cpp", self::MODEL), code().as_bytes())])
    }
}

impl Default for FakeTorch {
    fn default() -> Self {
        Self::new()
    }
}

fn soname(name: &str) -> [String; 1] {
    [format!("-Wl,-soname,{name}")]
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A package of a compiled model for the CPU, and these entries.
pub fn package(model: &[u8], more: &[(&str, &[u8])]) -> Vec<u8> {
    let library = format!("{MODEL}.so");
    let metadata = format!("{MODEL}_metadata.json");
    let mut entries: Vec<(&str, &[u8])> = vec![
        ("p/archive_format", b"pt2"),
        (&metadata, br#"{"AOTI_DEVICE_KEY": "cpu"}"#),
        (&library, model),
    ];
    entries.extend(more);
    archive(&entries)
}

/// An archive, as torch writes it: nothing is compressed.
pub fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in entries {
        archive.start_file(*name, stored).unwrap_or_else(|e| panic!("{name}: {e}"));
        archive.write_all(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    archive.finish().unwrap_or_else(|e| panic!("{e}")).into_inner()
}

/// The generated code of the fake model: the lines that the plugin reads, as torch 2.9 writes them.
pub fn code() -> String {
    let mut code = String::new();
    for (at, name) in ["arg0_1", "arg1_1"].into_iter().enumerate() {
        let mut check = |message: &str, expected: &str| {
            let _ = writeln!(
                code,
                "        ss << \"input_handles[{at}]: {message}, \"\n           << \"expected{expected}, \" << \"but got: \""
            );
        };
        check("dim value is too small at 0", " it to be >= 2");
        check("dim value is too large at 0", " to be <= 8");
        check("dim value is too small at 1", " it to be >= 2");
        check("dim value is too large at 1", " to be <= 100");
        check("unmatched dim value at 2", ": 3");
        check("unmatched stride value at 1", ": 3");
        check("unmatched stride value at 2", ": 1");
        let _ = writeln!(
            code,
            "        ss << \"input_handles[{at}]: unmatched dtype, \"\n           << \"expected: \" << \
             {name}_expected_dtype << \"(at::kFloat), \""
        );
        let _ = writeln!(code, "    inputs_info_[{at}].name = \"{name}\";");
    }
    code.push_str(
        "    int64_t s77 = arg0_1_size[0];\n    int64_t s12 = arg0_1_size[1];\n    \
         cpp_fused_add_0((const float*)(arg0_1.data_ptr()), (const float*)(arg1_1.data_ptr()), \
         (float*)(buf0.data_ptr()), (float*)(arg1_1.data_ptr()), s77);\n",
    );
    code
}
