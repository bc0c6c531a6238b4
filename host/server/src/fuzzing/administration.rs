//! Log settings from clients, and the flags that contain patterns and restrictions.

use super::block_on::block_on;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use trtserver_config::{
    ANONYMOUS, AccessKind, AccessedModels, ApiGroup, ApiRestrictions, AuthFile, HeaderPattern,
};
use trtserver_frontend_v2::http as v2;
use trtserver_wire::context::FrontendContext;

/// The body of `POST /v2/logging`: the response has all settings, or an error and nothing has
/// changed.
pub fn v2_log_settings(bytes: &[u8]) {
    // Tests run oracles in parallel, and the settings must not change meanwhile.
    thread_local!(static CONTEXT: Arc<FrontendContext> = trtserver_wire::echo_testing::context());
    let context = CONTEXT.with(Arc::clone);
    let before = context.log.settings();
    let (status, text) = block_on(async {
        let mut request = Request::new(Full::new(Bytes::copy_from_slice(bytes)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = http::Uri::from_static("/v2/logging");
        let response = v2::handle_request(&context, request, trtserver_base::clock::now_ns()).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await;
        (status, body.map(|body| body.to_bytes()).unwrap_or_default())
    });
    let json: Value = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{e}: {text:?}"));
    if status == 200 {
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(6), "{json}");
    } else {
        assert!([400, 500, 501, 503].contains(&status), "{status} {json}");
        assert_eq!(context.log.settings(), before, "{json}");
    }
}

/// A line with a pattern for headers, one with the name of a header, and restrictions: nothing
/// panics, and no error shows a value.
pub fn access_flags(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let (pattern, name) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    if let Ok(Some(pattern)) = HeaderPattern::parse("pattern", pattern) {
        pattern.matches(name);
    }
    let restrictions: Vec<String> = lines.map(str::to_owned).collect();
    if let Ok(Some(parsed)) = ApiRestrictions::parse("restricted", "api", "p-", &restrictions) {
        let restriction = parsed.for_group(ApiGroup::Inference);
        assert!(restriction.is_none_or(|one| !one.value().is_empty() && one.header.len() > 2));
    }
}

/// An auth file: nothing panics, and what is accepted cannot give more than it says.
pub fn auth_file(bytes: &[u8]) {
    let file = match AuthFile::parse("auth", bytes) {
        Ok(file) => file,
        Err(error) => return assert!(error.starts_with("auth file auth"), "{error}"),
    };
    let mut credentials = BTreeSet::new();
    for name in &file.names {
        assert!(!name.name.is_empty() && !name.scopes.is_empty(), "{name:?}");
        assert_eq!(name.credentials.is_empty(), name.name == ANONYMOUS, "{name:?}");
        assert!(name.rate != Some(0) && name.in_flight != Some(0), "{name:?}");
        for credential in &name.credentials {
            assert!(credentials.insert(credential), "of two names: {credential:?}");
        }
        for (kind, group) in AccessKind::ALL.iter().flat_map(|k| ApiGroup::ALL.map(|g| (*k, g))) {
            let allows = |models| name.scopes.iter().any(|scope| scope.allows(kind, group, models));
            let some = allows(AccessedModels::Unknown);
            assert!(some || !allows(AccessedModels::Named("vision-net")), "{name:?}");
            // Who may see all models may see each.
            let all = allows(AccessedModels::All);
            assert!(!all || allows(AccessedModels::Named("vision-net")), "{name:?}");
        }
    }
}
