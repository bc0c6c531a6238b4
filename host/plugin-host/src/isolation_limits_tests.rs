//! Unit tests of `limits.rs`.

use super::*;

#[test]
fn reads_settings_and_model_parameters() {
    let mut settings = BTreeMap::from(
        [("isolation-deadline-seconds", "0.5"), ("threads", "2")]
            .map(|(k, v)| (k.to_owned(), v.to_owned())),
    );
    let limits = IsolationLimits::take(&mut settings).unwrap();
    assert_eq!(limits.response, Some(Duration::from_millis(500)));
    assert_eq!(limits.open, IsolationLimits::default().open);
    assert_eq!(settings.len(), 1);
    let mut config = ModelConfig { name: "m".into(), ..Default::default() };
    let mut set = |key: &str, value: &str| {
        let value = trtserver_proto::v2::ModelParameter { string_value: value.into() };
        config.parameters.insert(key.into(), value);
        limits.for_model(&config)
    };
    assert_eq!(set("isolation_deadline_seconds", "0").unwrap().response, None);
    let e = set("isolation_open_deadline_seconds", "-1").unwrap_err().message;
    assert!(e.contains("'m'") && e.contains("open") && e.contains("-1"), "{e}");
    let e = set("isolation_dedline_seconds", "1").unwrap_err().message;
    assert!(e.contains("'isolation_dedline_seconds' is unknown"), "{e}");
    for key in ["isolation-deadline-seconds", "isolation-dedline"] {
        let mut settings = BTreeMap::from([(key.to_owned(), "soon".to_owned())]);
        assert!(IsolationLimits::take(&mut settings).unwrap_err().contains(key));
    }
}
