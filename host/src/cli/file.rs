//! The `--config` file: TOML with the flags' names as keys, dashes or underscores alike.
//!
//! Relative paths in it are relative to where the server was started, as on the command line.

use std::ffi::OsString;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::catalogue::{self, Flag, Kind};
use super::{Given, Origin, Typed, suggestion};

/// The flags a file gives. The error names the file and the line.
pub fn read(path: &Path) -> Result<Typed, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{}: cannot read the configuration file: {e}", path.display()))?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Typed, String> {
    let line = |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
    let at = |line: usize, what: String| format!("{}:{line}: {what}", path.display());
    let table = DeTable::parse(text)
        .map_err(|e| at(e.span().map_or(1, |s| line(s.start)), e.message().to_owned()))?;
    let mut typed = Typed::default();
    for (key, value) in table.get_ref() {
        let (name, line) = (key.get_ref().as_ref(), line(key.span().start));
        let flag = lookup(name).ok_or_else(|| {
            let hint = suggestion(name, "").map(|h| format!(" {h}")).unwrap_or_default();
            at(line, format!("there is no flag named {name}.{hint}"))
        })?;
        if flag.name == "config" {
            return Err(at(line, "a configuration file cannot name another".to_owned()));
        }
        let values = values(flag, value)
            .ok_or_else(|| at(line, format!("{name} takes {}", expected(flag))))?;
        let origin = Origin::File { path: path.to_owned(), line };
        if let Some(Given { origin: Origin::File { line: other, .. }, .. }) = typed.get(flag.name) {
            let what =
                format!("{name} and line {} set the same flag, {}", line.min(*other), flag.name);
            return Err(at(line.max(*other), what));
        }
        typed.0.insert(flag.name, Given { values, origin });
    }
    Ok(typed)
}

fn lookup(name: &str) -> Option<&'static Flag> {
    catalogue::find(name).or_else(|| catalogue::find(&name.replace('_', "-")))
}

/// The value as it would have been typed; none when it is of the wrong type.
fn values(flag: &Flag, value: &Spanned<DeValue<'_>>) -> Option<Vec<OsString>> {
    match value.get_ref() {
        DeValue::Array(list) if flag.repeatable => {
            list.iter().map(|v| single(flag.kind, v.get_ref())).collect()
        }
        value => Some(vec![single(flag.kind, value)?]),
    }
}

fn single(kind: Kind, value: &DeValue<'_>) -> Option<OsString> {
    let text = match (kind, value) {
        (Kind::Bool | Kind::Verbosity, DeValue::Boolean(b)) => b.to_string(),
        (Kind::Int { .. } | Kind::Count | Kind::Verbosity | Kind::Float, DeValue::Integer(n)) => {
            i64::from_str_radix(n.as_str(), n.radix()).ok()?.to_string()
        }
        (Kind::Float, DeValue::Float(x)) => x.as_str().to_owned(),
        (Kind::Text(_) | Kind::Path(_) | Kind::Choice(_), DeValue::String(s)) => s.to_string(),
        _ => return None,
    };
    Some(text.into())
}

fn expected(flag: &Flag) -> String {
    let one = match flag.kind {
        Kind::Bool => "true or false, without quotes",
        Kind::Int { .. } | Kind::Count => "a whole number, without quotes",
        Kind::Verbosity => "a whole number or true or false, without quotes",
        Kind::Float => "a number, without quotes",
        Kind::Text(_) | Kind::Path(_) | Kind::Choice(_) => "a text in quotes",
    };
    if flag.repeatable { format!("{one}, or a list of these") } else { one.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Result<Vec<(String, Vec<String>, usize)>, String> {
        let typed = parse(text, Path::new("t.toml"))?;
        let flat = typed.iter().map(|(flag, given)| {
            let values = given.values.iter().map(|v| v.to_string_lossy().into_owned()).collect();
            let Origin::File { line, .. } = given.origin else { panic!("not from the file") };
            (flag.name.to_owned(), values, line)
        });
        Ok(flat.collect())
    }

    #[test]
    fn keys_and_values() {
        let text = "http_port = 0x1F90\nallow-grpc=false\n\nmodel_store = [\"/a\", \"/b\"]\n\
                    metrics-interval-ms = 1.5\nlog-verbose = true\nbackend-dir = \"/p\"\n\
                    model_base_path = \"/c\"\nexit-timeout-secs = -1\n";
        let want = [
            ("exit-timeout-secs", vec!["-1"], 9),
            ("log-verbose", vec!["true"], 6),
            ("model-repository", vec!["/a", "/b"], 4),
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
    fn mistakes_name_file_and_line() {
        let table = [
            (
                "\nhttp-prot = 1",
                "t.toml:2: there is no flag named http-prot. Did you mean http-port?",
            ),
            ("[http]\nport = 1", "t.toml:1: there is no flag named http."),
            ("zzzzzzzz = 1", "t.toml:1: there is no flag named zzzzzzzz."),
            ("help = true", "t.toml:1: there is no flag named help."),
            ("config = \"x\"", "t.toml:1: a configuration file cannot name another"),
            ("http-port = \"80\"", "t.toml:1: http-port takes a whole number, without quotes"),
            ("allow_http = \"true\"", "t.toml:1: allow_http takes true or false, without quotes"),
            ("allow_http = 1", "t.toml:1: allow_http takes true or false, without quotes"),
            ("id = [\"a\"]", "t.toml:1: id takes a text in quotes"),
            (
                "model-store = [1]",
                "t.toml:1: model-store takes a text in quotes, or a list of these",
            ),
            (
                "model-store = \"a\"\nmodel-repository = \"b\"",
                "t.toml:2: model-store and line 1 set the same flag, model-repository",
            ),
        ];
        for (text, want) in table {
            let got = given(text).unwrap_err();
            assert!(got.starts_with(want), "{text:?}: {got}");
        }
        let got = given("id = \"a\"\nport = = 2").unwrap_err();
        assert!(got.starts_with("t.toml:2: "), "{got}");
    }
}
