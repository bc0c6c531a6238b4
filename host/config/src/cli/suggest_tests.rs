//! Unit tests of `suggest.rs`.

use super::*;

#[test]
fn suggestion_names_similar_flags() {
    let table = [
        ("http-prot", Some("Did you mean --http-port?")),
        ("model_store", Some("Did you mean --model-store?")),
        (
            "grpc-max-connection",
            Some("It could be --grpc-max-connection-age, --grpc-max-connection-age-grace."),
        ),
        ("zzzzzz", None),
    ];
    for (name, want) in table {
        assert_eq!(suggest_flag(name, "--").as_deref(), want, "{name}");
    }
}
