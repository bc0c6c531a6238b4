//! Values of single flags: versions, servers, headers, shapes, ranges, files of intervals.

use super::Flags;
use crate::engine::Distribution;
use crate::settings::{InputData, Protocol, Range, Server};
use std::fs;
use std::path::PathBuf;

/// -1 and nothing: the server chooses.
pub(super) fn parse_version(flags: &Flags) -> Result<String, String> {
    match flags.number("version-of-model", -1_i64)? {
        negative if negative < 0 => Ok(String::new()),
        version => Ok(version.to_string()),
    }
}

pub(super) fn parse_servers(flags: &Flags, protocol: Protocol) -> Result<Vec<Server>, String> {
    let always_tls = protocol == Protocol::Grpc && flags.set("ssl-grpc-use-ssl");
    let given = flags.all("url");
    if given.is_empty() {
        let port = if protocol == Protocol::Http { 8000 } else { 8001 };
        let authority = format!("localhost:{port}");
        return Ok(vec![Server { authority, tls: always_tls }]);
    }
    let server = |url: &str| {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let tls = match (scheme, protocol) {
            ("grpc" | "grpcs", Protocol::Http) => {
                return Err(format!("-u {url}: the protocol is HTTP; -i grpc selects gRPC"));
            }
            ("" | "http" | "grpc", _) => always_tls,
            ("https" | "grpcs", _) => true,
            _ => return Err(format!("-u {url}: '{scheme}' is not a scheme of a server")),
        };
        let rest = rest.trim_end_matches('/');
        match rest.is_empty() || rest.contains('/') {
            true => Err(format!("-u {url}: expected HOST:PORT")),
            false => Ok(Server { authority: rest.to_owned(), tls }),
        }
    };
    given.into_iter().map(server).collect()
}

/// The headers of each request. A token comes from a file: others see the start line.
pub(super) fn read_headers(flags: &Flags) -> Result<Vec<(String, String)>, String> {
    let headers = flags.all("header").into_iter().map(parse_header);
    let mut headers: Vec<_> = headers.collect::<Result<_, _>>()?;
    if let Some(path) = flags.text("token-file") {
        let token =
            std::fs::read_to_string(path).map_err(|e| format!("--token-file {path}: {e}"))?;
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("--token-file {path}: expected one token without spaces"));
        }
        // gRPC has names in lower case.
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
    Ok(headers)
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let (name, value) = (name.trim(), value.trim());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let printable = value.bytes().all(|byte| byte == b'\t' || (b' '..0x7f).contains(&byte));
    match !name.is_empty() && name.bytes().all(token) && printable {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("-H {text}: expected NAME:VALUE")),
    }
}

pub(super) fn parse_shape(text: &str) -> Result<(String, Vec<i64>), String> {
    let wrong = || format!("failed to parse input shape: {text}");
    let (name, dims) = text.rsplit_once(':').ok_or_else(wrong)?;
    let dims: Result<Vec<i64>, _> = dims.split(',').map(str::parse).collect();
    let dims = dims.map_err(|_| wrong())?;
    match dims.iter().any(|dim| *dim <= 0) {
        true => Err("input shape must be > 0".to_owned()),
        false => Ok((name.to_owned(), dims)),
    }
}

pub(super) fn input_data(flags: &Flags) -> Result<InputData, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut zero = flags.set("zero");
    for text in flags.all("input-data") {
        let path = PathBuf::from(text);
        match text {
            _ if path.exists() => files.push(path),
            "zero" => zero = true,
            "random" => {}
            _ => return Err(format!("unsupported input data provided {text}")),
        }
    }
    files.extend(flags.all("data-directory").into_iter().map(PathBuf::from));
    match (zero, files.is_empty()) {
        (true, false) => Err("zero input can't be set when data directory is provided".to_owned()),
        (true, true) => Ok(InputData::Zero),
        (false, true) => Ok(InputData::Random),
        (false, false) => Ok(InputData::Files(files)),
    }
}

/// Up to three numbers; a number that is left out has the value `usual`.
fn split_triple<N: std::str::FromStr + Copy>(
    text: &str,
    usual: N,
    (option, words): (&str, &str),
) -> Result<[N; 3], String> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(format!("option {option} can have maximum of three elements"));
    }
    let mut numbers = [usual; 3];
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().map_err(|_| format!("failed to parse {words} range: {text}"))?;
    }
    Ok(numbers)
}

pub(super) fn parse_range(flags: &Flags, binary: bool, limit: u64) -> Result<Range, String> {
    let old = flags.set("dynamic")
        || flags.text("old-concurrency").is_some()
        || flags.text("old-limit").is_some();
    let concurrency = flags.text("concurrency-range");
    let rate = flags.text("request-rate-range");
    let intervals = flags.text("request-intervals");
    let refuse = |text: &str| Err(text.to_owned());
    if concurrency.is_some() && old {
        return refuse("can not use deprecated options with --concurrency-range");
    }
    if rate.is_some() && old {
        return refuse("can not use concurrency options with --request-rate-range");
    }
    if rate.is_some() && concurrency.is_some() {
        return refuse("can not specify concurrency_range and request_rate_range simultaneously");
    }
    if intervals.is_some() && old {
        return refuse("can not use deprecated options with --request-intervals");
    }
    if intervals.is_some() && (rate.is_some() || concurrency.is_some()) {
        return refuse(
            "can not use --concurrency-range or --request-rate-range along with --request-intervals",
        );
    }
    let distribution = match flags.text("request-distribution").unwrap_or("constant") {
        "constant" => Distribution::Constant,
        "poisson" => Distribution::Poisson,
        other => return Err(format!("unsupported request distribution provided {other}")),
    };
    let (range, [start, end, step]) = if let Some(file) = intervals {
        if binary {
            return refuse("--binary-search needs a range, not --request-intervals");
        }
        return Ok(Range::Intervals(read_intervals(file)?));
    } else if let Some(text) = rate {
        let [start, end, step] = split_triple(text, 1.0, ("request_rate_range", "request rate"))?;
        (Range::Rate { start, end, step, distribution }, [start, end, step])
    } else {
        let mut numbers = [1_usize; 3];
        if let Some(text) = concurrency {
            numbers = split_triple(text, 1, ("concurrency-range", "concurrency"))?;
        } else if old {
            numbers[0] = flags.number("old-concurrency", 1)?;
            if flags.set("dynamic") {
                numbers[1] = flags.number("old-limit", 0)?;
            }
        }
        let [start, end, step] = numbers;
        (Range::Concurrency { start, end, step }, numbers.map(|number| number as f64))
    };
    if !(start > 0.0 && start.is_finite()) {
        return refuse("The start of the search range must be > 0");
    }
    if !(step > 0.0 && end >= 0.0) {
        return refuse("The step of the search range must be > 0, its end not negative");
    }
    if end == 0.0 && limit == 0 {
        return refuse(
            "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously",
        );
    }
    if binary && end == 0.0 {
        return refuse("The end of the range can not be 0 (or 0.0) for binary search mode.");
    }
    if binary && limit == 0 {
        return refuse("The latency threshold can not be 0 for binary search mode.");
    }
    if binary && end < start {
        return refuse(
            "The end of the range can not be less than start of the range for binary search mode.",
        );
    }
    Ok(range)
}

fn read_intervals(file: &str) -> Result<Vec<u64>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("--request-intervals {file}: {e}"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let number = |(index, line): (usize, &str)| {
        line.trim().parse().map_err(|_| {
            format!("--request-intervals {file}: line {}: '{line}' is not a number", index + 1)
        })
    };
    let gaps: Vec<u64> = lines.map(number).collect::<Result<_, _>>()?;
    match gaps.iter().any(|gap| *gap > 0) {
        true => Ok(gaps),
        false => Err(format!("--request-intervals {file}: no interval above 0")),
    }
}
