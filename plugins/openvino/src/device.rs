//! Names of devices: `CPU`, `GPU.1`, `NPU`, and lists such as `HETERO:GPU,CPU`.

use trtserver_framework::fault::PluginFault;

/// The device of instances of KIND_CPU and KIND_AUTO.
pub const CPU: &str = "CPU";

/// The device of instances of KIND_MODEL: the library chooses.
pub const AUTO: &str = "AUTO";

/// Names that are no devices, but ways to use several.
const LISTS: [&str; 4] = [AUTO, "BATCH", "HETERO", "MULTI"];

/// The devices of this machine that a name means.
fn named_devices(name: &str) -> Vec<&str> {
    let (head, list) = name.split_once(':').unwrap_or((name, ""));
    if !LISTS.contains(&head) {
        return vec![name];
    }
    // `-GPU` excludes a device, `GPU(4)` gives it a batch size.
    let names = list.split(',').map(str::trim).filter(|own| !own.starts_with('-'));
    let names = names.map(|own| own.split('(').next().unwrap_or(own));
    names.filter(|own| !own.is_empty() && !LISTS.contains(own)).collect()
}

/// # Errors
/// Names the first device that is not among those of this machine.
pub fn expect_present(name: &str, present: &[String]) -> Result<(), PluginFault> {
    let is_present = |own: &&str| {
        let first = format!("{own}.0");
        // `GPU` is the first of several, `GPU.0` the only one.
        present.iter().any(|found| {
            let base = found.split('.').next().unwrap_or(found);
            found == own || base == *own || *found == first || format!("{found}.0") == **own
        })
    };
    match named_devices(name).into_iter().find(|own| !is_present(own)) {
        None => Ok(()),
        Some(absent) => Err(PluginFault::unavailable(format!(
            "device '{absent}' is not present; the devices that OpenVINO finds here are: {}. Others need their driver, \
             and OpenVINO's library for them beside libopenvino.so",
            present.join(", ")
        ))),
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
