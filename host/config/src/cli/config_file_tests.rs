//! Unit tests of `config_file.rs`.

use super::*;

fn given(text: &str) -> Result<Vec<(String, Vec<String>, usize)>, String> {
    let flags = parse_config_file(text, Path::new("t.toml"))?;
    let flat = flags.iter().map(|(flag, given)| {
        let values = given.values.iter().map(|v| v.to_string_lossy().into_owned()).collect();
        let FlagOrigin::File { line, .. } = given.origin else { panic!("not from the file") };
        (flag.name.to_owned(), values, line)
    });
    Ok(flat.collect())
}

#[test]
fn keys_are_flags_and_values_have_their_type() {
    let text = "http_port = 0x1F90\nallow-grpc=false\n\nmodel_store = [\"/a\", \"/b\"]\n\
                metrics-interval-ms = 1.5\nlog-verbose = true\nbackend-dir = \"/p\"\n\
                model_base_path = \"/c\"\nexit-timeout-secs = -1\n";
    let want = [
        ("exit-timeout-secs", vec!["-1"], 9),
        ("log-verbose", vec!["true"], 6),
        ("model-store", vec!["/a", "/b"], 4),
        ("model_base_path", vec!["/c"], 8),
        ("http-port", vec!["8080"], 1),
        ("allow-grpc", vec!["false"], 2),
        ("metrics-interval-ms", vec!["1.5"], 5),
        ("backend-dir", vec!["/p"], 7),
    ];
    let want: Vec<_> = want
        .into_iter()
        .map(|(n, v, l)| (n.to_owned(), v.into_iter().map(str::to_owned).collect(), l))
        .collect();
    assert_eq!(given(text).unwrap(), want);
}

#[test]
fn error_names_file_and_line() {
    let table = [
        ("\nhttp-prot = 1", "t.toml:2: there is no flag named http-prot. Did you mean http-port?"),
        ("[http]\nport = 1", "t.toml:1: there is no flag named http."),
        ("zzzzzzzz = 1", "t.toml:1: there is no flag named zzzzzzzz."),
        ("help = true", "t.toml:1: there is no flag named help."),
        ("config = \"x\"", "t.toml:1: a configuration file cannot include another"),
        ("http-port = \"80\"", "t.toml:1: http-port takes a whole number, without quotes"),
        ("allow_http = \"true\"", "t.toml:1: allow_http takes true or false, without quotes"),
        ("allow_http = 1", "t.toml:1: allow_http takes true or false, without quotes"),
        ("id = [\"a\"]", "t.toml:1: id takes a string in quotes"),
        ("model-store = [1]", "t.toml:1: model-store takes a string in quotes, or a list of these"),
        (
            "model-store = \"a\"\nmodelstore = \"b\"",
            "t.toml:2: modelstore and line 1 set the same flag, model-store",
        ),
    ];
    for (text, want) in table {
        let got = given(text).unwrap_err();
        assert!(got.starts_with(want), "{text:?}: {got}");
    }
    let got = given("id = \"a\"\nport = = 2").unwrap_err();
    assert!(got.starts_with("t.toml:2: "), "{got}");
}
