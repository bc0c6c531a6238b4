//! Unit tests of `auth_scope.rs`.

use super::AccessKind::{Control, Infer, Read};
use super::AccessedModels::{All, Named, Unknown};
use super::*;

#[test]
fn patterns_match_whole_names() {
    for (pattern, name, matches) in [
        ("*", "", true),
        ("*", "resnet", true),
        ("resnet", "resnet", true),
        ("resnet", "resnet2", false),
        ("resnet", "aresnet", false),
        ("vision-*", "vision-a", true),
        ("vision-*", "vision-", true),
        ("vision-*", "vision", false),
        ("*-fp16", "net-fp16", true),
        ("*-fp16", "net-fp16-fp16", true),
        ("*-fp16", "net-fp16x", false),
        ("a*b*c", "abc", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("a*ab", "aab", true),
        ("**", "x", true),
        ("[a]", "a", false),
    ] {
        assert_eq!(ModelPattern(pattern.into()).matches(name), matches, "{pattern} {name}");
    }
}

#[test]
fn scopes_allow_what_they_say() {
    use ApiGroup::*;
    for (scope, kind, group, models, allowed) in [
        ("*", Control, ModelRepository, All, true),
        ("infer", Infer, Inference, Named("m"), true),
        ("infer", Read, Metadata, Named("m"), false),
        ("read", Control, Logging, AccessedModels::None, false),
        ("control:logging", Read, Logging, AccessedModels::None, true),
        ("control:logging", Infer, Inference, Named("m"), false),
        ("read:health,metrics", Read, Metrics, All, true),
        ("read:health", Read, Metadata, AccessedModels::None, false),
        ("read:*:a-*", Read, Metadata, All, false),
        ("read:*:a-*", Read, Metadata, AccessedModels::None, true),
        ("infer:*:a-*,b", Infer, Inference, Named("b"), true),
        ("infer:*:a-*,b", Infer, Inference, Named("c"), false),
        ("infer:*:a-*,b", Infer, Inference, Unknown, true),
        ("infer:*:a:b", Infer, Inference, Named("a:b"), true),
    ] {
        let parsed = AccessScope::parse(scope).unwrap();
        assert_eq!(
            parsed.allows(kind, group, models),
            allowed,
            "{scope} {kind:?} {group:?} {models:?}"
        );
    }
}

#[test]
fn needed_scopes_can_be_written_to_the_file() {
    for (models, text) in [
        (AccessedModels::None, "read:model-config"),
        (Named("resnet"), "read:model-config:resnet"),
        (All, "read:model-config:*"),
    ] {
        let needed = NeededScope { kind: Read, group: ApiGroup::ModelConfig, models };
        assert_eq!(needed.to_string(), text);
        let scope = AccessScope::parse(text).unwrap();
        assert!(scope.allows(Read, ApiGroup::ModelConfig, models));
    }
}
