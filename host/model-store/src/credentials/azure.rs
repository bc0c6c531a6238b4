//! Credentials and settings for Azure Blob Storage.

use super::super::location::ObjectUrl;
use super::{CredentialEnvironment, CredentialSources, file};
use object_store::ClientOptions;
use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};

/// The first source that has credentials: Triton's credential file, its variable, key, shared access signature,
/// client secret, workload identity, command line, managed identity.
///
/// # Errors
/// A source that was named cannot be used.
pub fn find_azure_credentials(
    url: &ObjectUrl,
    env: &CredentialEnvironment,
    options: ClientOptions,
    sources: &mut CredentialSources,
) -> Result<MicrosoftAzureBuilder, String> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(&url.account)
        .with_container_name(&url.bucket)
        .with_client_options(options);
    for (name, value) in env.settings("AZURE_") {
        if let Ok(key) = name.parse::<Key>()
            && !is_credential(&key)
        {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = &url.endpoint {
        // Servers other than Azure's have the account in the path.
        builder = builder
            .with_endpoint(format!("{endpoint}/{}", url.account))
            .with_allow_http(endpoint.starts_with("http://"));
    }
    if let Some(found) = file::read_azure_entry(url, env, sources)? {
        let entry = found.entry;
        if entry.account_str != url.account && !entry.account_str.is_empty() {
            let why = format!("is for account '{}', not '{}'", entry.account_str, url.account);
            return Err(format!("{}: {why}", found.source));
        }
        if entry.account_key.is_empty() {
            return Err(format!("{}: needs account_key", found.source));
        }
        sources.used(found.source, format!("key of account '{}'", url.account));
        return Ok(builder.with_access_key(entry.account_key));
    }
    if let Some(builder) = read_auth_type(&builder, env, sources)? {
        return Ok(builder);
    }
    for name in ["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"] {
        if let Some([key]) = sources.variables(env, [name]) {
            sources.used(name, format!("key of account '{}'", url.account));
            return Ok(builder.with_access_key(key));
        }
    }
    for name in ["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"] {
        if let Some([token]) = sources.variables(env, [name]) {
            sources.used(name, "shared access signature");
            return Ok(builder.with_config(Key::SasKey, token));
        }
    }
    const CLIENT: &str = "AZURE_CLIENT_ID";
    const TENANT: &str = "AZURE_TENANT_ID";
    if let Some([client, secret, tenant]) =
        sources.variables(env, [CLIENT, "AZURE_CLIENT_SECRET", TENANT])
    {
        sources.used("AZURE_CLIENT_SECRET", format!("client {client} of tenant {tenant}"));
        return Ok(builder.with_client_secret_authorization(client, secret, tenant));
    }
    if let Some([client, file, tenant]) =
        sources.variables(env, [CLIENT, "AZURE_FEDERATED_TOKEN_FILE", TENANT])
    {
        sources.used("AZURE_FEDERATED_TOKEN_FILE", format!("client {client} of tenant {tenant}"));
        let builder = builder.with_client_id(client).with_tenant_id(tenant);
        return Ok(builder.with_federated_token_file(file));
    }
    if env.is_true("AZURE_USE_AZURE_CLI") {
        sources.used("AZURE_USE_AZURE_CLI", "login of the az command");
        return Ok(builder.with_use_azure_cli(true));
    }
    sources.nothing("AZURE_USE_AZURE_CLI", "not set");
    if env.is_true("AZURE_SKIP_SIGNATURE") {
        sources.used("AZURE_SKIP_SIGNATURE", "anonymous");
        return Ok(builder.with_skip_signature(true));
    }
    sources.nothing("AZURE_SKIP_SIGNATURE", "not set: not anonymous");
    Ok(use_managed_identity(builder, "managed identity of the instance", env, sources))
}

/// Triton's `AZURE_STORAGE_AUTH_TYPE`: `managed_identity` skips the other sources, `default` looks
/// at them in order.
///
/// # Errors
/// It has another value.
fn read_auth_type(
    builder: &MicrosoftAzureBuilder,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
) -> Result<Option<MicrosoftAzureBuilder>, String> {
    const NAME: &str = "AZURE_STORAGE_AUTH_TYPE";
    match env.get(NAME) {
        None | Some("default") => Ok(None),
        Some("managed_identity") => {
            let source = format!("{NAME}=managed_identity");
            Ok(Some(use_managed_identity(builder.clone(), &source, env, sources)))
        }
        Some(other) => Err(format!("{NAME}={other}: expected managed_identity or default")),
    }
}

/// The identity of the client `AZURE_STORAGE_CLIENT_ID`, or that of the system.
fn use_managed_identity(
    builder: MicrosoftAzureBuilder,
    source: &str,
    env: &CredentialEnvironment,
    sources: &mut CredentialSources,
) -> MicrosoftAzureBuilder {
    match env.get("AZURE_STORAGE_CLIENT_ID") {
        Some(client) => {
            sources.used(source, format!("client {client} of AZURE_STORAGE_CLIENT_ID"));
            builder.with_client_id(client)
        }
        None => {
            sources.used(source, "");
            builder
        }
    }
}

/// Set from the source that was chosen only. Account and container are named by the URL.
fn is_credential(key: &Key) -> bool {
    matches!(
        key,
        Key::AccountName
            | Key::ContainerName
            | Key::AccessKey
            | Key::SasKey
            | Key::Token
            | Key::ClientId
            | Key::ClientSecret
            | Key::AuthorityId
            | Key::FederatedTokenFile
            | Key::UseAzureCli
            | Key::SkipSignature
            | Key::CredentialType
    )
}
