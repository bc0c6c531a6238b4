//! Credentials and settings for Google Cloud Storage.

use super::super::location::ObjectUrl;
use super::{CredentialEnvironment, CredentialSources, file};
use object_store::ClientOptions;
use object_store::gcp::GoogleCloudStorageBuilder;

const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// The first source that has credentials: Triton's credential file, application default
/// credentials, the instance.
///
/// # Errors
/// A source that was named cannot be used.
pub fn find_gcs_credentials(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    options: ClientOptions,
    sources: &mut CredentialSources,
) -> Result<GoogleCloudStorageBuilder, String> {
    let emulator = env.get(EMULATOR).map(|host| match host.contains("://") {
        true => host.to_owned(),
        false => format!("http://{host}"),
    });
    let base = url.endpoint.clone().or(emulator);
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&url.bucket)
        .with_client_options(options.with_allow_http(true));
    if let Some(base) = &base {
        builder = builder.with_base_url(base);
    }
    if let Some(found) = file::read_gcs_entry(url, env, sources)? {
        return from_file(builder, &found.entry, &found.source, sources);
    }
    const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
    if let Some([path]) = sources.variables(env, [VARIABLE]) {
        return from_file(builder, path, VARIABLE, sources);
    }
    let own = env.home(".config/gcloud/application_default_credentials.json");
    if let Some(path) = own {
        let source = path.display().to_string();
        if path.exists() {
            return from_file(builder, &source, &source, sources);
        }
        sources.nothing(source, "does not exist");
    }
    if env.is_true("GOOGLE_SKIP_SIGNATURE") {
        sources.used("GOOGLE_SKIP_SIGNATURE", "anonymous");
        return Ok(builder.with_skip_signature(true));
    }
    sources.nothing("GOOGLE_SKIP_SIGNATURE", "not set: not anonymous");
    if env.is_true("NO_GCE_CHECK") {
        sources.nothing("instance metadata", "disabled by NO_GCE_CHECK");
        return Err("no credentials".to_owned());
    }
    sources.used("instance metadata", "");
    Ok(builder)
}

/// The key of a service account, or the credentials of `gcloud auth application-default login`.
fn from_file(
    builder: GoogleCloudStorageBuilder,
    path: &str,
    source: &str,
    sources: &mut CredentialSources,
) -> Result<GoogleCloudStorageBuilder, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{source}: cannot read '{path}': {e}"))?;
    let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) else {
        return Err(format!("{source}: '{path}' is not JSON"));
    };
    let text = |key: &str| json.get(key).and_then(serde_json::Value::as_str).unwrap_or("unnamed");
    if text("type") == "authorized_user" {
        sources.used(source, format!("'{path}', a user's credentials"));
        return Ok(builder.with_application_credentials(path));
    }
    sources.used(source, format!("'{path}', service account {}", text("client_email")));
    Ok(builder.with_service_account_path(path))
}
