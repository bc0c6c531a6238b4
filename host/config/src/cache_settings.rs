//! `--cache-config` and `--response-cache-byte-size`: the response cache. The texts of errors are
//! those of Triton where it has one.

use super::notes::StartNote;
use super::values::{FlagValues, parse_size};
use crate::cli::GivenFlags;
use std::time::Duration;

/// The response cache of the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheSettings {
    /// Bytes.
    pub size: u64,
    /// How long a response is used; `None`: as long as it is there.
    pub ttl: Option<Duration>,
}

const NAME: &str = "cache-config";
const OLD_NAME: &str = "response-cache-byte-size";
const FORMAT: &str = "--cache-config option format is '<cache name>,<setting>=<value>'. Got ";

/// `None` without a cache.
pub fn cache_settings(flags: &GivenFlags, v: &FlagValues) -> Result<Option<CacheSettings>, String> {
    let texts = v.texts(NAME);
    let old: u64 = v.number(OLD_NAME)?;
    if texts.is_empty() {
        return Ok((old > 0).then_some(CacheSettings { size: old, ttl: None }));
    }
    if flags.get(OLD_NAME).is_some() {
        return Err(
            "Error: Incompatible flags --response-cache-byte-size and --cache-config both \
                    provided. Please provide one or the other."
                .to_owned(),
        );
    }
    let origin = flags.get(NAME).map(|given| given.origin.to_string()).unwrap_or_default();
    let mut settings = Vec::new();
    for text in &texts {
        let (cache, rest) =
            text.split_once(',').ok_or_else(|| format!("{origin}{FORMAT}{text}"))?;
        for setting in rest.split(',') {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("{origin}{FORMAT}{text}"))?;
            settings.push((cache, key, value));
        }
    }
    let first = settings.first().map_or("", |(cache, ..)| *cache);
    if settings.iter().any(|(cache, ..)| *cache != first) {
        return Err("found multiple cache configurations, but only a single cache is currently \
                    supported"
            .to_owned());
    }
    if first != "local" {
        return Err(format!(
            "{origin}--{NAME}={}: this server does not have the cache '{first}', only 'local'",
            texts[0]
        ));
    }
    local_cache(&origin, &settings).map(Some)
}

/// Warns of the older flag.
pub fn cache_notes(v: &FlagValues) -> Result<Option<StartNote>, String> {
    let size: u64 = v.number(OLD_NAME)?;
    Ok((size > 0).then(|| {
        let text = format!("--{OLD_NAME}={size}: deprecated, use --cache-config=local,size={size}");
        StartNote::Warning(text)
    }))
}

fn local_cache(origin: &str, settings: &[(&str, &str, &str)]) -> Result<CacheSettings, String> {
    let (mut size, mut ttl) = (None, None);
    for (cache, key, value) in settings {
        let refuse =
            |expected: &str| format!("{origin}--{NAME}={cache},{key}={value}: expected {expected}");
        match *key {
            "size" => size = Some(parse_size(value).ok_or_else(|| {
                format!(
                    "Failed to initialize LocalCache: config didn't contain a valid 'size' field. {}",
                    refuse("a number of bytes, at least 1")
                )
            })?),
            "ttl" => {
                let secs: Option<f64> = value.parse().ok();
                let given = secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
                let given = given.filter(|ttl| !ttl.is_zero());
                ttl = Some(given.ok_or_else(|| refuse("seconds, more than 0"))?);
            }
            _ => return Err(refuse("one of the keys size, ttl")),
        }
    }
    let size = size.ok_or_else(|| {
        "Failed to initialize LocalCache: config didn't contain a valid 'size' field.".to_owned()
    })?;
    Ok(CacheSettings { size: size.unsigned_abs(), ttl })
}

#[cfg(test)]
#[path = "cache_settings_tests.rs"]
mod tests;
