//! Models that echo 64 bytes and differ in their scheduling.

use crate::Result;
use crate::repository;
use std::fs;
use tempfile::TempDir;

/// Name, maximum batch size, and the rest of the configuration.
pub type Model<'a> = (&'a str, u32, &'a str);

pub const NO_SCHEDULER: Model = ("plain", 16, "");
pub const DYNAMIC: Model = ("dynamic", 16, "dynamic_batching { }");
pub const SIXTEEN: Model = ("sixteen", 16, DELAYED);
/// The same for a model that takes a millisecond for each batch.
pub const SIXTEEN_SLOW: Model = ("sixteen_slow", 16, DELAYED_AND_SLOW);
pub const SIXTEEN_OF_64: Model = ("sixteen_of_64", 64, DELAYED);
pub const SIXTEEN_OF_64_SLOW: Model = ("sixteen_of_64_slow", 64, DELAYED_AND_SLOW);
pub const DIRECT_16: Model = ("direct_16", 16, DIRECT);
pub const DIRECT_64: Model = ("direct_64", 64, DIRECT);
pub const OLDEST_64: Model = ("oldest_64", 16, OLDEST);

const DELAYED: &str =
    "dynamic_batching { preferred_batch_size: 16 max_queue_delay_microseconds: 2000 }";
const DELAYED_AND_SLOW: &str =
    "dynamic_batching { preferred_batch_size: 16 max_queue_delay_microseconds: 2000 }
    parameters { key: \"delay_ms\" value { string_value: \"1\" } }";
const DIRECT: &str = "sequence_batching { direct { } }";
const OLDEST: &str = "sequence_batching { oldest {
    max_candidate_sequences: 64 preferred_batch_size: 16 max_queue_delay_microseconds: 2000 } }";

/// A repository of these models.
pub fn folder(models: &[Model]) -> Result<TempDir> {
    let folder = repository::empty()?;
    add(&folder, models)?;
    Ok(folder)
}

/// A hundred idle models: half of them with dynamic batching, a quarter each with a sequence
/// strategy.
pub fn hundred_idle(folder: &TempDir) -> Result<()> {
    for number in 0..100 {
        let (_, rows, rest) = match number % 4 {
            0 => DYNAMIC,
            1 => SIXTEEN,
            2 => DIRECT_16,
            _ => OLDEST_64,
        };
        add(folder, &[(&format!("idle_{number}"), rows, rest)])?;
    }
    Ok(())
}

fn add(folder: &TempDir, models: &[Model]) -> Result<()> {
    for (name, rows, rest) in models {
        let version = folder.path().join(name).join("1");
        fs::create_dir_all(&version).map_err(|e| format!("{}: {e}", version.display()))?;
        let file = folder.path().join(name).join("config.pbtxt");
        let text = format!(
            "name: \"{name}\"\nbackend: \"probe\"\nmax_batch_size: {rows}\n\
             input [ {{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n\
             output [ {{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n{rest}\n"
        );
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}
