//! What a file is that is not a package of AOTInductor, and how to make one of it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use trtserver_framework::file_contents::explain_foreign;
use zip::result::ZipError;

/// How a module becomes a package.
pub const CONVERSION: &str = "torch._inductor.aoti_compile_and_package(torch.export.export(module.eval(), \
                              example_inputs), package_path=\"model.pt2\") makes a package of a module";

/// A sentence about a file that is not a complete archive.
pub fn explain_file(path: &Path, error: &ZipError) -> String {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(512).read_to_end(&mut head));
    if let Err(e) = read {
        return format!("cannot be read: {e}");
    }
    if let Some(what) = explain_foreign(&head) {
        return what.to_owned();
    }
    match head.as_slice() {
        [0x50, 0x4b, 3, 4, ..] => {
            format!("the archive is truncated or damaged ({error}): copy or download it again")
        }
        [0x80, 2..=5, ..] => format!(
            "the file is a Python pickle, expected a package of AOTInductor, which is a zip archive: {CONVERSION}"
        ),
        [0x7f, b'E', b'L', b'F', ..] => {
            "the file is a shared library, expected the package that holds it".to_owned()
        }
        _ => format!(
            "the file is not a zip archive ({error}), expected a package of AOTInductor: {CONVERSION}"
        ),
    }
}

/// A sentence about an archive without a compiled model.
pub fn explain_archive(names: &[String]) -> String {
    let has = |test: &dyn Fn(&str) -> bool| {
        names.iter().any(|name| test(name.split_once('/').map_or(name, |(_, rest)| rest)))
    };
    if has(&|name| name == "constants.pkl" || name.starts_with("code/")) {
        return format!("the file is TorchScript, expected a package of AOTInductor: {CONVERSION}");
    }
    if has(&|name| name.starts_with("models/") || name == "serialized_exported_program.json")
        || names.iter().any(|name| name == "serialized_exported_program.json")
    {
        return "the file is an exported program and not compiled: \
                torch._inductor.aoti_compile_and_package(torch.export.load(\"FILE\"), package_path=\"model.pt2\") \
                compiles it"
            .to_owned();
    }
    if has(&|name| name == "data.pkl") {
        return format!(
            "the file has what torch.save wrote, such as weights, expected a package of AOTInductor: {CONVERSION}"
        );
    }
    let found: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    format!(
        "the archive has no entry below data/aotinductor (found '{}'), expected a package of AOTInductor: {CONVERSION}",
        found.join("', '")
    )
}
