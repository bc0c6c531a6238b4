//! Settings of the fairness between clients: `--fairness-header`, `--fairness-names`,
//! `--fairness-weight`.

use super::values::FlagValues;
use http::HeaderName;
use std::collections::BTreeMap;

/// The largest weight of a client.
pub const MAX_WEIGHT: u32 = 1000;

/// How clients are told apart, and their shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FairnessSettings {
    pub source: ClientSource,
    /// By client; 1 for all others.
    pub weights: BTreeMap<String, u32>,
}

/// What tells clients apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientSource {
    /// The value of this header, of gRPC metadata with this key; in lower case.
    Header(String),
    /// The names of the auth file.
    AuthNames,
}

/// `None` without fairness between clients.
pub fn fairness_settings(v: &FlagValues) -> Result<Option<FairnessSettings>, String> {
    let header = v.texts("fairness-header").pop().filter(|header| !header.is_empty());
    let names = v.bool("fairness-names")?;
    let weights = read_weights(&v.texts("fairness-weight"))?;
    let source = match header {
        Some(header) if names => Err(format!(
            "--fairness-header={header} and --fairness-names contradict each other: clients are told apart by one of them"
        )),
        Some(header) => Ok(Some(ClientSource::Header(read_header(&header)?))),
        None if names && v.paths("auth-file").iter().all(|path| path.as_os_str().is_empty()) => {
            Err("--fairness-names requires --auth-file, which has the names".to_owned())
        }
        None => Ok(names.then_some(ClientSource::AuthNames)),
    };
    match source? {
        None if !weights.is_empty() => Err(
            "--fairness-weight requires --fairness-header or --fairness-names, which tell clients apart"
                .to_owned(),
        ),
        source => Ok(source.map(|source| FairnessSettings { source, weights })),
    }
}

fn read_header(text: &str) -> Result<String, String> {
    let name = HeaderName::from_bytes(text.as_bytes());
    let name = name.map_err(|_| {
        format!("--fairness-header={text}: expected the name of a header, such as x-client")
    })?;
    if name.as_str().ends_with("-bin") {
        return Err(format!(
            "--fairness-header={text}: gRPC metadata whose key ends with -bin are not text; choose another name"
        ));
    }
    Ok(name.as_str().to_owned())
}

fn read_weights(texts: &[String]) -> Result<BTreeMap<String, u32>, String> {
    let mut weights = BTreeMap::new();
    for text in texts {
        let parts = text.rsplit_once(':').filter(|(client, _)| !client.is_empty());
        let weight = parts.and_then(|(client, weight)| Some((client, weight.parse::<u32>().ok()?)));
        let Some((client, weight)) = weight.filter(|(_, n)| (1..=MAX_WEIGHT).contains(n)) else {
            return Err(format!(
                "--fairness-weight={text}: expected CLIENT:WEIGHT with a weight of 1 to {MAX_WEIGHT}"
            ));
        };
        if weights.insert(client.to_owned(), weight).is_some() {
            return Err(format!(
                "--fairness-weight={text}: client '{client}' has a weight already"
            ));
        }
    }
    Ok(weights)
}

#[cfg(test)]
#[path = "fairness_settings_tests.rs"]
mod tests;
