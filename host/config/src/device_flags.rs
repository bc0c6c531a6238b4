//! Flags with a value for each device or policy: `--host-policy`, `--model-load-gpu-limit`,
//! `--cuda-memory-pool-byte-size`.

use super::values::FlagValues;
use crate::cli::GivenFlags;
use std::collections::BTreeMap;
use trtserver_base::host_policy::HostPolicy;

/// Policies by name. Of several values for a setting the last one counts.
pub fn host_policies(
    flags: &GivenFlags,
    v: &FlagValues,
) -> Result<BTreeMap<String, HostPolicy>, String> {
    const NAME: &str = "host-policy";
    let mut policies: BTreeMap<String, HostPolicy> = BTreeMap::new();
    for text in v.texts(NAME) {
        let refuse = |why: &str| format!("{}--{NAME}={text}: {why}", origin(flags, NAME));
        // The value may have commas.
        let parts = text.split_once('=').and_then(|(left, value)| {
            let (name, setting) = left.split_once(',')?;
            Some((name, setting, value))
        });
        let Some((name, setting, value)) = parts.filter(|(name, ..)| !name.is_empty()) else {
            return Err(refuse("expected NAME,SETTING=VALUE, such as gpu_0,cpu-cores=0-3"));
        };
        let policy = policies.entry(name.to_owned()).or_insert_with(|| HostPolicy::new(name));
        policy.set(setting, value).map_err(|e| refuse(&e))?;
    }
    Ok(policies)
}

/// By GPU, the share of its memory that may be in use when an instance is opened; GPUs with a share
/// of 1 or more have no limit.
pub fn gpu_load_limits(flags: &GivenFlags, v: &FlagValues) -> Result<BTreeMap<i32, f64>, String> {
    let is_share = |share: &f64| share.is_finite() && *share >= 0.0;
    let mut limits =
        read_pairs(flags, v, "model-load-gpu-limit", "FRACTION, such as 0:0.8", is_share)?;
    limits.retain(|_, share| *share < 1.0);
    Ok(limits)
}

/// Bytes by GPU.
pub fn gpu_pools(flags: &GivenFlags, v: &FlagValues) -> Result<BTreeMap<i32, u64>, String> {
    read_pairs(flags, v, "cuda-memory-pool-byte-size", "BYTES, such as 0:67108864", |_| true)
}

/// Values `GPU:VALUE`; of several for a GPU the last one counts.
fn read_pairs<N: std::str::FromStr>(
    flags: &GivenFlags,
    v: &FlagValues,
    flag: &str,
    form: &str,
    accepts: impl Fn(&N) -> bool,
) -> Result<BTreeMap<i32, N>, String> {
    let pair = |text: &String| {
        let (gpu, value) = text.split_once(':')?;
        let gpu = gpu.parse().ok().filter(|gpu| *gpu >= 0)?;
        Some((gpu, value.parse().ok().filter(&accepts)?))
    };
    let read = |text: &String| {
        let origin = origin(flags, flag);
        pair(text).ok_or_else(|| format!("{origin}--{flag}={text}: expected GPU:{form}"))
    };
    v.texts(flag).iter().map(read).collect()
}

/// Where the flag was given, as errors begin.
fn origin(flags: &GivenFlags, flag: &str) -> String {
    flags.get(flag).map(|given| given.origin.to_string()).unwrap_or_default()
}

#[cfg(test)]
#[path = "device_flags_tests.rs"]
mod tests;
