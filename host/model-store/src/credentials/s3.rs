//! Credentials and settings for S3.

use super::super::location::ObjectUrl;
use super::profile::CredentialProfile;
use super::{CredentialEnvironment, CredentialSources, file};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::{Certificate, ClientOptions};

/// The first source that has credentials, as in the AWS SDKs: key in the environment, profile,
/// token of a web identity, container, instance. Triton's credential file comes before all of them.
///
/// # Errors
/// A source that was named cannot be used.
pub fn find_s3_credentials(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    options: ClientOptions,
    sources: &mut CredentialSources,
) -> Result<AmazonS3Builder, String> {
    let mut builder =
        AmazonS3Builder::new().with_bucket_name(&url.bucket).with_client_options(options);
    for (name, value) in env.settings("AWS_") {
        if let Ok(key) = name.parse::<Key>()
            && !is_credential(&key)
        {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = &url.endpoint {
        // Servers other than Amazon's have the bucket in the path.
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"))
            .with_virtual_hosted_style_request(false);
    }
    let mut profile_name = env.get("AWS_PROFILE").unwrap_or("default").to_owned();
    if let Some(found) = file::read_s3_entry(url, env, sources)? {
        let entry = found.entry;
        if !entry.region.is_empty() {
            builder = builder.with_region(&entry.region);
        }
        if !entry.key_id.is_empty() && !entry.secret_key.is_empty() {
            sources.used(found.source, format!("key id {}", entry.key_id));
            let token = Some(entry.session_token).filter(|token| !token.is_empty());
            return Ok(with_key(builder, &entry.key_id, &entry.secret_key, token.as_deref()));
        }
        if entry.profile.is_empty() {
            return Err(format!("{}: needs key_id and secret_key, or profile", found.source));
        }
        sources.nothing(found.source, format!("names profile '{}'", entry.profile));
        profile_name = entry.profile;
    } else if let Some([id, secret]) =
        sources.variables(env, ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    {
        sources.used("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", format!("key id {id}"));
        return Ok(with_key(builder, id, secret, env.get("AWS_SESSION_TOKEN")));
    }
    let profile = CredentialProfile::read(&profile_name, env);
    let source = format!("profile '{profile_name}' in {}", profile.files.join(", "));
    if let (Some(region), None) = (&profile.region, builder.get_config_value(&Key::Region)) {
        builder = builder.with_region(region);
    }
    if let (Some(id), Some(secret)) = (&profile.key_id, &profile.secret_key) {
        sources.used(source, format!("key id {id}"));
        return Ok(with_key(builder, id, secret, profile.session_token.as_deref()));
    }
    match profile.unsupported {
        Some(setting) => sources.nothing(source, format!("{setting} is not supported")),
        None => sources.nothing(source, "no keys"),
    }
    if let Some([token, role]) =
        sources.variables(env, ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"])
    {
        sources.used("AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN", format!("role {role}"));
        return Ok(builder
            .with_config(Key::WebIdentityTokenFile, token)
            .with_config(Key::RoleArn, role));
    }
    if let Some([uri]) = sources.variables(env, ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]) {
        sources.used("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "");
        return Ok(builder.with_config(Key::ContainerCredentialsRelativeUri, uri));
    }
    if let Some([uri, token]) = sources.variables(
        env,
        ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"],
    ) {
        sources.used("AWS_CONTAINER_CREDENTIALS_FULL_URI", "");
        return Ok(builder
            .with_config(Key::ContainerCredentialsFullUri, uri)
            .with_config(Key::ContainerAuthorizationTokenFile, token));
    }
    if env.is_true("AWS_SKIP_SIGNATURE") {
        sources.used("AWS_SKIP_SIGNATURE", "anonymous");
        return Ok(builder.with_skip_signature(true));
    }
    sources.nothing("AWS_SKIP_SIGNATURE", "not set: not anonymous");
    if env.is_true("AWS_EC2_METADATA_DISABLED") {
        sources.nothing("instance metadata", "disabled by AWS_EC2_METADATA_DISABLED");
        return Err("no credentials".to_owned());
    }
    sources.used("instance metadata", "");
    Ok(builder)
}

fn with_key(
    builder: AmazonS3Builder,
    id: &str,
    secret: &str,
    token: Option<&str>,
) -> AmazonS3Builder {
    let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
    match token {
        Some(token) => builder.with_token(token),
        None => builder,
    }
}

/// Set from the source that was chosen only. A bucket is named by the URL.
fn is_credential(key: &Key) -> bool {
    matches!(
        key,
        Key::AccessKeyId
            | Key::SecretAccessKey
            | Key::Token
            | Key::Bucket
            | Key::WebIdentityTokenFile
            | Key::RoleArn
            | Key::ContainerCredentialsRelativeUri
            | Key::ContainerCredentialsFullUri
            | Key::ContainerAuthorizationTokenFile
            | Key::SkipSignature
    )
}

/// Trusts the certificates of `AWS_CA_BUNDLE` beside those of the system.
///
/// # Errors
/// The file cannot be read or is not PEM.
pub fn with_ca_bundle(
    mut options: ClientOptions,
    env: &CredentialEnvironment,
) -> Result<ClientOptions, String> {
    let Some(path) = env.get("AWS_CA_BUNDLE") else { return Ok(options) };
    let unusable = |why: String| format!("AWS_CA_BUNDLE={path}: {why}");
    let pem = std::fs::read(path).map_err(|e| unusable(e.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|e| unusable(e.to_string()))?;
    if found.is_empty() {
        return Err(unusable("no certificate in PEM format".to_owned()));
    }
    for certificate in found {
        options = options.with_root_certificate(certificate);
    }
    Ok(options)
}

/// The service that AWS's variables name for URLs that name none.
pub fn endpoint_in_environment(env: &CredentialEnvironment) -> Option<String> {
    let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
    let found = names.into_iter().find_map(|name| env.get(name))?;
    Some(found.trim_end_matches('/').to_owned())
}
