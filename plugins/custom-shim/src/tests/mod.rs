//! The whole plugin with libraries in C, on the test host.
#![allow(clippy::unwrap_used)]

mod harness;

use harness::{Harness, Model, RequestExt, compile, error, ints};
use std::path::Path;
use tempfile::TempDir;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::{Failure, Request, Session};

const GENERATIONS: [(&str, &[(&str, &str)]); 6] = [
    ("-DGEN=1", &[("custom_api", "A")]),
    ("-DGEN=2", &[("custom_api", "B11")]),
    ("-DGEN=2", &[]),
    ("-DGEN=3", &[("custom_api", "C")]),
    ("-DGEN=6", &[]),
    ("-DGEN=8", &[("custom_api", "C")]),
];

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("trtserver-custom-").tempdir().unwrap()
}

fn addsub(parameters: &[(&'static str, &'static str)]) -> Model {
    Model {
        name: "m",
        max_batch_size: 8,
        inputs: vec![("INPUT0", &[4]), ("INPUT1", &[4])],
        outputs: vec![("OUTPUT0", &[4]), ("OUTPUT1", &[4])],
        parameters: parameters.to_vec(),
        device_id: -1,
        ..Model::default()
    }
}

/// Up to v0.11 the size of an input is a result only.
fn has_hints(parameters: &[(&str, &str)]) -> bool {
    !matches!(parameters, [(_, "A" | "B11")])
}

fn probe(name: &'static str, parameters: &[(&'static str, &'static str)]) -> Model {
    Model {
        name,
        max_batch_size: 4,
        inputs: vec![("DO", &[1]), ("DATA", &[-1])],
        outputs: vec![("OUT", &[-1]), ("SPARE", &[1])],
        parameters: parameters.to_vec(),
        device_id: -1,
        ..Model::default()
    }
}

fn task(number: i32) -> Request {
    Request::new(1).ints("DO", &[1, 1], &[&[number]]).request_output("OUT")
}

/// A counter of the probe library.
fn count(library: &Path, name: &str) -> i32 {
    // SAFETY: a library that is open already, and a function of this type in it.
    unsafe {
        let library = libloading::Library::new(library).unwrap();
        library.get::<unsafe extern "C" fn() -> i32>(name.as_bytes()).unwrap()()
    }
}

fn story(library: &Path) -> String {
    // SAFETY: the library is open already and has a function of this type, which returns a static C
    // string.
    unsafe {
        let library = libloading::Library::new(library).unwrap();
        let story =
            library.get::<unsafe extern "C" fn() -> *const std::ffi::c_char>(b"probe_story");
        std::ffi::CStr::from_ptr(story.unwrap()()).to_string_lossy().into_owned()
    }
}

fn refused(folder: TempDir, model: &Model) -> Failure {
    Harness::open(folder, model).err().unwrap()
}

#[test]
fn every_generation_adds_and_subtracts() {
    let _session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let folder = folder();
        compile("addsub.c", &[flag], folder.path());
        let harness =
            Harness::open(folder, &addsub(parameters)).unwrap_or_else(|e| panic!("{flag}: {e:?}"));
        let first = Request::new(1)
            .ints("INPUT0", &[1, 4], &[&[1, 2, 3, 4]])
            .ints("INPUT1", &[1, 4], &[&[10], &[], &[20, 30], &[40]])
            .request_output("OUTPUT1")
            .request_output("OUTPUT0");
        let rows: Vec<i32> = (0..12).collect();
        let second = Request::new(3)
            .ints("INPUT0", &[3, 4], &[&rows])
            .ints("INPUT1", &[3, 4], &[&[1; 12]])
            .request_output("OUTPUT0");
        for _ in 0..3 {
            let done = harness.run(&[first.clone(), second.clone()]);
            assert_eq!(ints(&done[0], "OUTPUT0"), (vec![1, 4], vec![11, 22, 33, 44]), "{flag}");
            assert_eq!(ints(&done[0], "OUTPUT1").1, [-9, -18, -27, -36]);
            assert_eq!(ints(&done[1], "OUTPUT0").0, [3, 4]);
            assert_eq!(ints(&done[1], "OUTPUT0").1, (1..13).collect::<Vec<i32>>());
            assert_eq!(done[1].responses[0].outputs.len(), 1);
        }
        drop(harness);
    }
}

#[test]
fn library_errors_fail_payload_or_whole_batch() {
    let session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let folder = folder();
        let library = compile("probe.c", &[flag], folder.path());
        let harness = Harness::open(folder, &probe("m", parameters)).ok().unwrap();
        let done = harness.run(&[task(1), task(90), task(2)]);
        let payload = error(&done[0]);
        assert_eq!(payload.text, "payload error for 'm_0': (22) the payload is bad", "{flag}");
        assert_eq!(payload.code, code::INTERNAL);
        assert_eq!(ints(&done[1], "OUT").1, [90]);
        assert_eq!(error(&done[2]).text, "payload error for 'm_0': (23) <no error string>");
        // An error of the whole batch.
        let both = task(1).control("ALL", 1);
        for outcome in harness.run(&[task(90), both]) {
            assert_eq!(error(&outcome).text, "execute error for 'm_0': (21) the batch is bad");
        }
        // More rows than `max_batch_size`.
        let many = Request::new(5).ints("DO", &[5, 1], &[&[90; 5]]).request_output("OUT");
        let text = error(&harness.run(&[many])[0]).text.clone();
        assert_eq!(text, "dynamic batch size 5 for 'm_0', max allowed is 4");
        drop(harness);
        assert!(session.logged("error finalizing custom library: (13) finalised badly"));
        assert_eq!(
            (count(&library, "probe_initialised"), count(&library, "probe_finalised")),
            (1, 1)
        );
    }
}

#[test]
fn failed_initialize_is_finalized_once() {
    let _session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let later = ["-DGEN=6", "-DGEN=8"].contains(&flag);
        for (name, want) in [
            (
                "refuse",
                if later {
                    "failed to create instance, error code: 11"
                } else {
                    "(11) initialise failed on command"
                },
            ),
            (
                "silent",
                if later {
                    "failed to create instance, error code: 12"
                } else {
                    "(12) <no error string>"
                },
            ),
        ] {
            let folder = folder();
            let library = compile("probe.c", &[flag], folder.path());
            // Keeps the file after the folder is removed.
            let link = folder.path().with_extension("so");
            std::fs::hard_link(&library, &link).unwrap();
            let failure = refused(folder, &probe(name, parameters));
            assert_eq!(failure.text, format!("initialize error for '{name}': {want}"), "{flag}");
            assert_eq!(failure.code, code::INTERNAL);
            assert_eq!(
                (count(&link, "probe_initialised"), count(&link, "probe_finalised")),
                (1, 1)
            );
            std::fs::remove_file(link).unwrap();
        }
    }
}

#[test]
fn initialize_receives_config_device_and_server_parameters() {
    let _session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let folder = folder();
        let library = compile("probe.c", &[flag], folder.path());
        let mut model = probe("m", parameters);
        model.device_id = 3;
        // A field of a later protocol, which no generation receives.
        trtserver_proto_wire::put_bytes(&mut model.config, 17, b"custom");
        let harness = Harness::open(folder, &model).ok().unwrap();
        let received = story(&library);
        let config = "gpu 3, config 11 bytes, zero behind 1";
        let repository = harness.folder.path().parent().unwrap();
        let rest = format!(", m_0, 2: 1, {}", repository.display());
        let all = if matches!(flag, "-DGEN=1" | "-DGEN=2") {
            config.into()
        } else {
            config.to_owned() + &rest
        };
        assert_eq!(received, all, "{flag}");
    }
}

#[test]
fn invalid_outputs_are_rejected() {
    for (flag, parameters) in GENERATIONS {
        let session = Session::start();
        let folder = folder();
        compile("probe.c", &[flag], folder.path());
        let harness = Harness::open(folder, &probe("m", parameters)).ok().unwrap();
        let strict = matches!(flag, "-DGEN=1" | "-DGEN=2");
        // Not requested: an error in generations A and B, skipped by later ones.
        let spare = &harness.run(&[task(3)])[0];
        assert_eq!(ints(spare, "OUT").1, [i32::from(!strict), 1], "{flag}");
        assert_eq!(session.logged("output 'SPARE' was not requested"), strict);
        let nulls = &harness.run(&[task(6)])[0];
        assert_eq!(ints(nulls, "OUT").1, [0; 5]);
        assert!(session.logged("GetNextInput for 'm_0', request 1 of 1: the name is null"));
        if flag != "-DGEN=1" {
            let rank = error(&harness.run(&[task(11)])[0]).text.clone();
            assert_eq!(
                rank,
                format!("instance 'm_0': output 'OUT' has a shape of {} dimensions", u64::MAX)
            );
            let null = error(&harness.run(&[task(12)])[0]).text.clone();
            assert_eq!(null, "instance 'm_0': output 'OUT' has 2 dimensions at a null address");
        } else {
            let odd = error(&harness.run(&[task(13)])[0]).text.clone();
            assert!(odd.contains("generation A cannot specify a shape"), "{odd}");
        }
        let unknown = &harness.run(&[task(8)])[0];
        assert_eq!(ints(unknown, "OUT").1, [0]);
        assert!(session.logged("unexpected input 'NOTHING'"));
        // The host, not the plugin, reports a requested output that is missing.
        let silent = &harness.run(&[task(77)])[0];
        assert!(silent.responses[0].outputs.is_empty());
        drop(harness);
    }
}

#[test]
fn stale_contexts_are_rejected() {
    let session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let folder = folder();
        compile("probe.c", &[flag], folder.path());
        let harness = Harness::open(folder, &probe("m", parameters)).ok().unwrap();
        harness.run(&[task(90), task(91)]);
        let late = &harness.run(&[task(7)])[0];
        assert_eq!(ints(late, "OUT").1, [0; 4], "{flag}");
        assert!(session.logged("which belongs to no payload in execution"));
        drop(harness);
    }
}

#[test]
fn input_blocks_are_returned_in_place_for_any_hint() {
    let _session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let folder = folder();
        compile("probe.c", &[flag], folder.path());
        let harness = Harness::open(folder, &probe("m", parameters)).ok().unwrap();
        let data = task(9).ints("DATA", &[1, 6], &[&[1], &[2, 3], &[], &[4, 5, 6]]);
        let blocks = ints(&harness.run(&[data])[0], "OUT").1;
        // A hint of 0 is the end, where there are hints.
        let expected = match has_hints(parameters) {
            true => [1, 1, 1, 4, 1, 8, 1, 12, 1, -1, 1, -1],
            false => [1, 0, 1, 8, 1, 12, 1, -1, 1, -1, 1, -1],
        };
        assert_eq!(blocks, expected, "{flag} {parameters:?}");
    }
}

#[test]
fn sequence_controls_and_null_requests_reach_library() {
    let _session = Session::start();
    for (flag, parameters) in GENERATIONS {
        let folder = folder();
        let library = compile("probe.c", &[flag], folder.path());
        let mut model = probe("m", parameters);
        trtserver_proto_wire::put_bytes(&mut model.config, 13, &[]);
        let harness = Harness::open(folder, &model).ok().unwrap();
        let real = task(10).control("READY", 1).with_sequence(5);
        // The library reads zeros whatever the request contains.
        let null = task(10).control("READY", 0);
        let done = harness.run(&[null.clone(), real]);
        assert_eq!(done[0].result, Ok(()));
        assert!(done[0].responses.is_empty());
        let zeros = if has_hints(parameters) { "1 6 1 1 1 1" } else { "1 0 1 1 1 1" };
        assert_eq!(story(&library), zeros, "{flag} {parameters:?}");
        let listed = if flag == "-DGEN=1" { [0, 0, 0] } else { [1, 1, 1] };
        assert_eq!(ints(&done[1], "OUT").1, [&listed[..], &[1, 1, 1, 1, 1]].concat());
        // A warm-up request belongs to no sequence, but is not a null request.
        assert_eq!(ints(&harness.run(&[null.warmup()])[0], "OUT").1[5..], [1, 0, 1]);
        drop(harness);
    }
}

#[test]
fn invalid_library_files_are_refused() {
    let _session = Session::start();
    let empty = folder();
    let missing = refused(empty, &probe("m", &[]));
    assert_eq!(missing.code, code::INTERNAL);
    assert!(
        missing.text.starts_with("unable to find Custom model 'libcustom.so' for m"),
        "{missing:?}"
    );
    let text = folder();
    std::fs::create_dir(text.path().join("1")).unwrap();
    std::fs::write(text.path().join("1/libcustom.so"), "no library").unwrap();
    let text = refused(text, &probe("m", &[]));
    assert_eq!(text.code, code::NOT_FOUND);
    assert!(text.text.starts_with("unable to load custom library: /"), "{text:?}");
    assert!(text.text.contains("libcustom.so: "), "the loader's message: {text:?}");
    let parts = folder();
    compile("parts.c", &["-DINITIALIZE"], parts.path());
    let parts = refused(parts, &probe("m", &[]));
    assert_eq!(parts.code, code::NOT_FOUND);
    assert!(
        parts.text.starts_with("unable to find 'CustomFinalize' entrypoint in custom library: /")
    );
    assert!(
        parts.text.ends_with("; missing as well: 'CustomErrorString', 'CustomExecute'"),
        "{parts:?}"
    );
    let three = folder();
    compile("parts.c", &["-DVERSION=3"], three.path());
    let three = refused(three, &probe("m", &[]));
    let want = "unable to load custom library: invalid custom version 3 is provided";
    assert_eq!((three.code, &*three.text), (code::INVALID, want));
}

#[test]
fn invalid_generation_settings_are_refused() {
    let _session = Session::start();
    let two = folder();
    compile("addsub.c", &["-DGEN=8"], two.path());
    let contradicts = refused(two, &addsub(&[("custom_api", "B")]));
    assert!(
        contradicts.text.contains("'custom_api' is 'B', but the library exports CustomVersion")
    );
    let unknown = refused(folder(), &addsub(&[("custom_api", "V1")]));
    assert!(unknown.text.starts_with("parameter 'custom_api' of model 'm' is 'V1'"), "{unknown:?}");
    let mut model = addsub(&[]);
    model.settings = vec![("api", "x")];
    let setting = refused(folder(), &model);
    assert!(setting.text.starts_with("setting 'api' of backend 'custom' is 'x'"), "{setting:?}");
    // The setting applies to libraries that do not export their version.
    let old = folder();
    compile("addsub.c", &["-DGEN=1"], old.path());
    model.settings = vec![("api", "A")];
    assert!(Harness::open(old, &model).is_ok());
}

#[test]
fn replaced_file_is_loaded_as_second_library() {
    let _session = Session::start();
    let dir = folder();
    let library = compile("addsub.c", &["-DGEN=2"], dir.path());
    let old = Harness::open(dir, &addsub(&[])).ok().unwrap();
    let open = crate::library::open_library(&library).unwrap();
    assert!(
        open.version.is_none()
            && std::ptr::eq(open, crate::library::open_library(&library).unwrap())
    );
    let other = folder();
    std::fs::rename(compile("addsub.c", &["-DGEN=8"], other.path()), &library).unwrap();
    assert_eq!(crate::library::open_library(&library).unwrap().version, Some(2));
    // A changed time with the same inode stands for overwriting, which would corrupt the open
    // image.
    let file = std::fs::File::options().write(true).open(&library).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let error = crate::library::open_library(&library).err().unwrap();
    assert!(error.text().contains("was overwritten while in use"), "{error}");
    drop(old);
}
