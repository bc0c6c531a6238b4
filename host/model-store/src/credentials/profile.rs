//! Profiles of the AWS command line: keys and region in `~/.aws/credentials` and `~/.aws/config`.

use super::CredentialEnvironment;
use std::path::PathBuf;

/// What a profile contains that this server can use.
#[derive(Default)]
pub struct CredentialProfile {
    pub key_id: Option<String>,
    pub secret_key: Option<String>,
    pub session_token: Option<String>,
    pub region: Option<String>,
    /// A setting that obtains keys in a way this server has not.
    pub unsupported: Option<String>,
    /// Files that were read, for messages.
    pub files: Vec<String>,
}

const UNSUPPORTED: [&str; 4] =
    ["credential_process", "sso_session", "sso_start_url", "source_profile"];

impl CredentialProfile {
    /// Reads the profile `name` from both files. A file that does not exist has no profiles.
    pub fn read(name: &str, env: &CredentialEnvironment) -> Self {
        let path = |variable: &str, default: &str| {
            env.get(variable).map(PathBuf::from).or_else(|| env.home(default))
        };
        let mut profile = Self::default();
        let in_config = match name {
            "default" => "default".to_owned(),
            name => format!("profile {name}"),
        };
        for (path, section) in [
            (path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"), name),
            (path("AWS_CONFIG_FILE", ".aws/config"), &*in_config),
        ] {
            let Some(path) = path else { continue };
            profile.files.push(path.display().to_string());
            if let Ok(text) = std::fs::read_to_string(&path) {
                profile.add(&text, section);
            }
        }
        profile
    }

    /// Adds the settings of `section`. Those of an earlier file take precedence.
    fn add(&mut self, text: &str, section: &str) {
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                inside = name.trim() == section;
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| inside) else { continue };
            let (key, value) = (key.trim(), value.trim().to_owned());
            let field = match key {
                "aws_access_key_id" => &mut self.key_id,
                "aws_secret_access_key" => &mut self.secret_key,
                "aws_session_token" => &mut self.session_token,
                "region" => &mut self.region,
                key if UNSUPPORTED.contains(&key) => {
                    self.unsupported.get_or_insert(key.to_owned());
                    continue;
                }
                _ => continue,
            };
            field.get_or_insert(value);
        }
    }
}
