//! Packages of AOTInductor, with a fake torch: what becomes of the server with damaged ones, of its
//! memory when models go, and of the plugin on the test host.

#![allow(clippy::expect_used)] // the functions here are parts of tests

use super::pytorch::{ask, config, input, reason, server};
use std::fs;
use trtserver_plugin_testkit::damaged_files::{SeededNumbers, damage_bytes};
use trtserver_tests::torch_packages::{FakeTorch, package};
use trtserver_tests::{Running, backends, folder, python_v1, python_v2, trtserver};

/// The clients of both generations, in the server's process and in one of the model's own.
#[test]
fn both_generations_of_clients() {
    let torch = FakeTorch::new();
    for isolation in ["none", "process"] {
        let server = server(&torch)
            .flag(format!("--backend-config=pytorch,isolation={isolation}"))
            .model("numbered", config("platform: 'torch_aoti'", 8))
            .file("numbered/1/model.pt2", torch.package())
            .file("completed/1/model.pt2", torch.package())
            .start();
        python_v2(&server, "v2_pytorch.py", &[]);
        python_v1(&server, "v1_pytorch.py", &[]);
        assert!(server.stop().success());
    }
}

/// Whether a compiled model is in the server's memory.
fn is_mapped(server: &Running) -> bool {
    let maps = format!("/proc/{}/maps", server.process().pid().as_raw_nonzero());
    fs::read_to_string(maps).expect("the maps of the server").contains("/trtserver-pytorch-")
}

/// Compiled C++ has symbols for which the dynamic loader would keep it until the process ends, and
/// variables of threads for which it would keep it until they end.
#[test]
fn an_unloaded_model_leaves_the_memory() {
    let torch = FakeTorch::new();
    let compiled = torch.model(&["-DTHREAD_VARIABLE", "-lstdc++"]);
    let server = server(&torch)
        .flag("--model-control-mode=explicit")
        .model("m", config("platform: 'torch_aoti'", 8))
        .file("m/1/model.pt2", package(&compiled, &[]))
        .start();
    for _ in 0..2 {
        let loaded = server.post("/v2/repository/models/m/load", &[], "");
        assert_eq!(loaded.status, 200, "{}", loaded.text());
        let pair = [input("INPUT__0", 1, 2, 0), input("INPUT__1", 1, 2, 10)];
        assert_eq!(ask(&server, "m", &pair).status, 200);
        assert!(is_mapped(&server));
        server.post("/v2/repository/models/m/unload", &[], "");
        server.poll_until("the compiled model is closed", |server| !is_mapped(server));
    }
    assert!(server.stop().success());
}

/// Copies of a package with an error each: refused, or the same model, as where the changed byte is
/// the time of an entry.
#[test]
fn damaged_packages_end_no_server() {
    let torch = FakeTorch::new();
    let (good, mut numbers) = (torch.package(), SeededNumbers::new(3));
    let names: Vec<String> = (0..40).map(|nth| format!("damaged{nth:02}")).collect();
    let start = names.iter().fold(server(&torch), |server, name| {
        let damaged = damage_bytes(&good, false, &mut numbers);
        server.file(&format!("{name}/1/model.pt2"), damaged)
    });
    let server = start.start();
    let pair = [input("ARGS[0]", 1, 2, 0), input("KWARGS[bias]", 1, 2, 10)];
    let mut refused = 0;
    for name in &names {
        match reason(&server, name) {
            reason if reason.is_empty() => assert_eq!(ask(&server, name, &pair).status, 200),
            reason => {
                assert!(reason.contains(name) && reason.contains("model.pt2"), "{reason}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20, "{refused}");
    assert!(server.stop().success());
}

/// The plugin on the test host: no promise of the interface is broken.
#[test]
fn the_plugin_passes_its_check() {
    let (torch, models) = (FakeTorch::new(), folder());
    let version = models.path().join("m/1");
    fs::create_dir_all(&version).expect("a folder");
    fs::write(version.join("model.pt2"), torch.package()).expect("a package");
    fs::write(models.path().join("m/config.pbtxt"), config("platform: 'torch_aoti'", 8))
        .expect("a configuration");
    let plugin = backends().join("pytorch/libtrtserver_pytorch.so").display().to_string();
    let (model, library) =
        (models.path().join("m").display().to_string(), torch.library().display().to_string());
    let setting = format!("library={library}");
    let ended = trtserver(["plugin", "check", &plugin, "--model", &model, "--setting", &setting]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains(" 0 broken, 0 warning, 0 untested, "), "{said}");
}
