//! Unit tests of `isolation.rs`.

use super::*;
use trtserver_proto::v2::ModelParameter;

#[test]
fn a_model_only_tightens_what_the_operator_has_set() {
    use Isolation::{None as Local, Process};
    for (set, otherwise, asked, want) in [
        (None, Local, None, Some(Local)),
        (None, Process, None, Some(Process)),
        (None, Process, Some("none"), Some(Local)),
        (None, Local, Some("process"), Some(Process)),
        (Some(Local), Process, None, Some(Local)),
        (Some(Local), Process, Some("process"), Some(Process)),
        (Some(Local), Local, Some("none"), Some(Local)),
        (Some(Process), Local, None, Some(Process)),
        (Some(Process), Local, Some("process"), Some(Process)),
        (Some(Process), Local, Some("none"), None),
        (Some(Process), Process, Some("none"), None),
        (None, Local, Some("thread"), None),
    ] {
        let mut config =
            ModelConfig { name: "m".into(), backend: "b".into(), ..Default::default() };
        if let Some(asked) = asked {
            let value = ModelParameter { string_value: asked.into() };
            config.parameters.insert(KEY.into(), value);
        }
        let found = choose_isolation(&config, IsolationSetting::new(set, otherwise));
        assert_eq!(found.as_ref().ok(), want.as_ref(), "{set:?} {otherwise:?} {asked:?}");
        let text = found.err().map(|e| e.message).unwrap_or_default();
        assert!(want.is_some() || text.starts_with("model 'm': parameter 'isolation' "), "{text}");
    }
}
