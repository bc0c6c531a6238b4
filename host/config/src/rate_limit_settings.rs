//! Settings of the rate limiter: `--rate-limit` and `--rate-limit-resource`.

use super::notes::StartNote;
use super::values::FlagValues;
use crate::cli::GivenFlags;

/// How many of a resource there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitResource {
    pub name: String,
    pub count: u64,
    /// `None`: on each device, or in the server for a global resource.
    pub device: Option<i32>,
}

/// Settings of a server with a rate limiter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimitSettings {
    /// Empty: of each resource there is the largest count that an instance needs.
    pub resources: Vec<RateLimitResource>,
}

/// `None` without a limiter.
pub fn rate_limit_settings(v: &FlagValues) -> Result<Option<RateLimitSettings>, String> {
    let texts = v.texts("rate-limit-resource");
    let resources = texts.iter().map(|text| parse_resource(text)).collect::<Result<_, _>>()?;
    let on = v.text("rate-limit")? == "execution_count";
    Ok(on.then_some(RateLimitSettings { resources }))
}

pub(super) fn rate_limit_notes(
    flags: &GivenFlags,
    v: &FlagValues,
) -> Result<Option<StartNote>, String> {
    let unused = flags.get("rate-limit-resource").is_some() && v.text("rate-limit")? == "off";
    Ok(unused.then(|| {
        let text = "--rate-limit-resource has no effect without --rate-limit=execution_count";
        StartNote::Warning(text.to_owned())
    }))
}

fn parse_resource(text: &str) -> Result<RateLimitResource, String> {
    let wrong = |what: &str| {
        format!(
            "--rate-limit-resource={text}: expected NAME:COUNT[:DEVICE], such as gpu:4 or gpu:4:0; {what}"
        )
    };
    let mut parts = text.split(':');
    let name = parts.next().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| wrong("the name is missing"))?;
    let count = parts.next().ok_or_else(|| wrong("the count is missing"))?;
    let count = count.parse().map_err(|_| wrong(&format!("'{count}' is not a count")))?;
    let device = match parts.next() {
        None => None,
        Some(device) => {
            let number = device.parse::<i32>().ok().filter(|number| *number >= 0);
            Some(number.ok_or_else(|| wrong(&format!("'{device}' is not the id of a device")))?)
        }
    };
    match parts.next() {
        Some(more) => Err(wrong(&format!("found ':{more}' after the device"))),
        None => Ok(RateLimitResource { name: name.to_owned(), count, device }),
    }
}

#[cfg(test)]
#[path = "rate_limit_settings_tests.rs"]
mod tests;
