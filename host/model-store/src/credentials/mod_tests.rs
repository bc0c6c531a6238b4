//! Unit tests of the sources of credentials.

use super::super::location::{ObjectUrl, StoreLocation};
use super::*;
use object_store::ClientOptions;
use std::fs;
use std::path::Path;

fn url(text: &str) -> ObjectUrl {
    match StoreLocation::parse(Path::new(text)) {
        Ok(StoreLocation::Object(url)) => url,
        other => panic!("{text}: {other:?}"),
    }
}

/// The source that is used for `text`, or the error.
fn chosen(text: &str, env: &CredentialEnvironment) -> Result<String, String> {
    let (url, options, mut sources) =
        (url(text), ClientOptions::new(), CredentialSources::default());
    match url.provider {
        super::super::location::StoreProvider::S3 => {
            drop(find_s3_credentials(&url, env, options, &mut sources)?)
        }
        super::super::location::StoreProvider::Gcs => {
            drop(find_gcs_credentials(&url, env, options, &mut sources)?)
        }
        super::super::location::StoreProvider::Azure => {
            drop(find_azure_credentials(&url, env, options, &mut sources)?)
        }
    }
    let shown = format!("{sources:?}");
    assert!(!shown.contains("HIDDEN"), "{shown}");
    Ok(sources.chosen().unwrap().to_string())
}

#[test]
fn first_source_of_s3_is_used() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    fs::write(
        home.path().join(".aws/credentials"),
        "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key =HIDDEN\n\
         [other]\naws_access_key_id=OTHER\naws_secret_access_key=HIDDEN\n",
    )
    .unwrap();
    fs::write(home.path().join(".aws/config"), "[profile sso]\nsso_session = x\n").unwrap();
    let key = [("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "HIDDEN")];
    let home_only = ("HOME", path);
    let cases: [(CredentialEnvironment, &str); 5] = [
        ([home_only, key[0], key[1]].into(), "key id ID"),
        ([home_only, key[0]].into(), "key id DEFAULT"),
        ([home_only, ("AWS_PROFILE", "other")].into(), "key id OTHER"),
        (
            [("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"), ("AWS_ROLE_ARN", "arn:role")].into(),
            "role arn:role",
        ),
        ([("AWS_SKIP_SIGNATURE", "true")].into(), "anonymous"),
    ];
    for (env, expected) in cases {
        let found = chosen("s3://bucket", &env).unwrap();
        assert!(found.contains(expected), "{found}");
    }
    let none: CredentialEnvironment =
        [home_only, ("AWS_PROFILE", "sso"), ("AWS_EC2_METADATA_DISABLED", "true")].into();
    assert_eq!(chosen("s3://bucket", &none).unwrap_err(), "no credentials");
}

#[test]
fn entry_with_the_longest_prefix_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("credentials.json");
    fs::write(
        &path,
        r#"{"s3": {"": {"key_id": "ANY", "secret_key": "HIDDEN"},
                   "s3://bucket": {"key_id": "BUCKET", "secret_key": "HIDDEN", "region": "eu-west-1"},
                   "s3://bucket/a": {"key_id": "A", "secret_key": "HIDDEN", "session_token": "HIDDEN"}},
            "as": {"as://account/container": {"account_str": "account", "account_key": "HIDDEN"}}}"#,
    )
    .unwrap();
    let env: CredentialEnvironment = [
        ("TRITON_CLOUD_CREDENTIAL_PATH", path.to_str().unwrap()),
        ("AWS_ACCESS_KEY_ID", "ENV"),
        ("AWS_SECRET_ACCESS_KEY", "HIDDEN"),
        ("AZURE_STORAGE_KEY", "HIDDEN"),
    ]
    .into();
    for (url, expected) in [
        ("s3://other", "key id ANY"),
        ("s3://bucket", "key id BUCKET"),
        ("s3://bucketeer", "key id ANY"),
        ("s3://bucket/a/b", "key id A)"),
        ("as://account/container/x", "TRITON_CLOUD_CREDENTIAL_PATH"),
        ("as://account/other", "AZURE_STORAGE_KEY"),
    ] {
        let found = chosen(url, &env).unwrap();
        assert!(found.contains(expected), "{url}: {found}");
    }
    fs::write(&path, "{\"s3\": {\"\": \"HIDDEN\"}}").unwrap();
    let error = chosen("s3://bucket", &env).unwrap_err();
    assert!(error.contains(":1:") && !error.contains("HIDDEN"), "{error}");
}

#[test]
fn first_source_of_azure_is_used() {
    const TYPE: &str = "AZURE_STORAGE_AUTH_TYPE";
    let key = ("AZURE_STORAGE_KEY", "HIDDEN");
    let cases: [(CredentialEnvironment, &str); 8] = [
        ([key].into(), "AZURE_STORAGE_KEY"),
        ([key, (TYPE, "default")].into(), "AZURE_STORAGE_KEY"),
        (
            [key, (TYPE, "managed_identity")].into(),
            "AZURE_STORAGE_AUTH_TYPE=managed_identity: used",
        ),
        (
            [key, (TYPE, "managed_identity"), ("AZURE_STORAGE_CLIENT_ID", "c")].into(),
            "managed_identity: used (client c of AZURE_STORAGE_CLIENT_ID)",
        ),
        (
            [("AZURE_STORAGE_CLIENT_ID", "c")].into(),
            "managed identity of the instance: used (client c of AZURE_STORAGE_CLIENT_ID)",
        ),
        ([("AZURE_STORAGE_SAS_TOKEN", "sig=HIDDEN")].into(), "AZURE_STORAGE_SAS_TOKEN"),
        (
            [("AZURE_CLIENT_ID", "c"), ("AZURE_CLIENT_SECRET", "HIDDEN"), ("AZURE_TENANT_ID", "t")]
                .into(),
            "client c of tenant t",
        ),
        ([].into(), "managed identity"),
    ];
    for (env, expected) in cases {
        let found = chosen("as://account/container", &env).unwrap();
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn variable_of_azure_names_the_authority() {
    let host = "https://login.microsoftonline.us";
    let env: CredentialEnvironment =
        [("AZURE_AUTHORITY_HOST", host), ("AZURE_STORAGE_CLIENT_ID", "c")].into();
    let (url, options) = (url("as://account/container"), ClientOptions::new());
    let builder = find_azure_credentials(&url, &env, options, &mut CredentialSources::default());
    let key = object_store::azure::AzureConfigKey::AuthorityHost;
    assert_eq!(builder.unwrap().get_config_value(&key).as_deref(), Some(host));
}

#[test]
fn unknown_type_of_azure_is_an_error() {
    let env: CredentialEnvironment = [("AZURE_STORAGE_AUTH_TYPE", "MSI")].into();
    assert_eq!(
        chosen("as://account/container", &env).unwrap_err(),
        "AZURE_STORAGE_AUTH_TYPE=MSI: expected managed_identity or default"
    );
}

#[test]
fn variables_of_aws_name_endpoint_and_certificates() {
    let of = |env: [(&str, &str); 3]| endpoint_in_environment(&env.into());
    let (all, s3) = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3");
    assert_eq!(
        of([(all, "http://minio:9000/"), (s3, ""), ("A", "")]),
        Some("http://minio:9000".into())
    );
    assert_eq!(of([(all, "http://a"), (s3, "https://b"), ("A", "")]), Some("https://b".into()));
    assert_eq!(of([("A", ""), ("B", ""), ("C", "")]), None);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    fs::write(&path, "no certificate").unwrap();
    for path in [path.to_str().unwrap(), "/nonexistent.pem"] {
        let env: CredentialEnvironment = [("AWS_CA_BUNDLE", path)].into();
        let error = with_ca_bundle(object_store::ClientOptions::new(), &env).unwrap_err();
        assert!(error.starts_with(&format!("AWS_CA_BUNDLE={path}: ")), "{error}");
    }
}

#[test]
fn key_file_of_google_that_cannot_be_read_is_an_error() {
    let env: CredentialEnvironment =
        [("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent.json")].into();
    let error = chosen("gs://bucket", &env).unwrap_err();
    assert!(error.contains("/nonexistent.json"), "{error}");
}
