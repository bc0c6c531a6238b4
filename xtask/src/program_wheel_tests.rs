//! Unit tests of `program_wheel.rs`.

use super::*;

#[test]
fn program_of_another_version_is_refused() {
    let directory = std::env::temp_dir().join(format!("xtask-program-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let wheel = ProgramWheel {
        name: "tool",
        version: "1.2.3",
        requirements: "",
        platform: "",
        megabytes: 0,
        members: "",
        directories: false,
        program: "tool",
    };
    let missing = wheel.check_version(&directory).unwrap_err();
    assert!(missing.ends_with("does not run on this system"), "{missing}");
    let program = directory.join("tool");
    for (printed, expected) in [("tool 1.2.3", Ok(())), ("v1.2.3", Ok(())), ("tool 1.2.4", Err(()))]
    {
        fs::write(&program, format!("#!/bin/sh\necho '{printed}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(wheel.check_version(&directory).map_err(|_| ()), expected, "{printed}");
    }
    fs::remove_dir_all(&directory).unwrap();
}
