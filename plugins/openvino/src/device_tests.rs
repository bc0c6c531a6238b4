//! Unit tests of `device.rs`.

use super::*;

#[test]
fn absent_devices_are_named() {
    let one = ["CPU"].map(str::to_owned);
    let many = ["CPU", "GPU.0", "GPU.1", "NPU"].map(str::to_owned);
    for (name, present, absent) in [
        ("CPU", &one[..], None),
        ("CPU.0", &one[..], None),
        ("AUTO", &one[..], None),
        ("AUTO:-GPU", &one[..], None),
        ("GPU", &one[..], Some("GPU")),
        ("NPU", &one[..], Some("NPU")),
        ("gpu", &many[..], Some("gpu")),
        ("HETERO:GPU,CPU", &one[..], Some("GPU")),
        ("BATCH:GPU(4)", &one[..], Some("GPU")),
        ("GPU", &many[..], None),
        ("GPU.1", &many[..], None),
        ("GPU.2", &many[..], Some("GPU.2")),
        ("HETERO:GPU.1, NPU", &many[..], None),
        ("BATCH:GPU(4)", &many[..], None),
    ] {
        match (expect_present(name, present), absent) {
            (Ok(()), None) => {}
            (Err(fault), Some(absent)) => {
                assert!(fault.text.starts_with(&format!("device '{absent}' is not present")));
                assert!(fault.text.contains(&present.join(", ")), "{fault}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}
