//! Unit tests of `settings.rs`.

use super::*;

fn read(
    options: &ExporterOptions,
    variables: &[(&str, &str)],
) -> Result<Option<ExporterSettings>, String> {
    ExporterSettings::read(options, &|name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn read_variables(variables: &[(&str, &str)]) -> ExporterSettings {
    read(&ExporterOptions::default(), variables).unwrap().unwrap()
}

#[test]
fn defaults_are_those_of_triton() {
    let settings = read_variables(&[("OTEL_SERVICE_NAME", " ")]);
    let expected = ExporterSettings {
        url: "http://localhost:4318/v1/traces".to_owned(),
        protocol: OtlpProtocol::HttpProtobuf,
        headers: Vec::new(),
        timeout: Duration::from_secs(10),
        gzip: false,
        certificate: None,
        resource: vec![("service.name".to_owned(), "triton-inference-server".to_owned())],
        limits: QueueLimits::default(),
    };
    assert_eq!(settings, expected);
}

/// Flag, variables, and the address that follows.
type EndpointRow = (Option<&'static str>, &'static [(&'static str, &'static str)], &'static str);

#[test]
fn endpoints() {
    const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const GRPC: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let table: [EndpointRow; 7] = [
        (None, &[(ALL, "http://a:1")], "http://a:1/v1/traces"),
        (None, &[(ALL, "https://a:1/x/")], "https://a:1/x/v1/traces"),
        (None, &[(ALL, "http://a:1"), (TRACES, "http://b:2/t")], "http://b:2/t"),
        (None, &[GRPC], "http://localhost:4317"),
        (None, &[GRPC, (ALL, "http://a:1")], "http://a:1"),
        (Some("http://f:3/own"), &[(TRACES, "http://b:2/t")], "http://f:3/own"),
        (Some("https://f"), &[GRPC], "https://f"),
    ];
    for (flag, variables, url) in table {
        let options =
            ExporterOptions { url: flag.map(str::to_owned), ..ExporterOptions::default() };
        let settings = read(&options, variables).unwrap().unwrap();
        assert_eq!(settings.url, url, "{flag:?} {variables:?}");
    }
}

#[test]
fn flags_win_over_variables() {
    let options = ExporterOptions {
        protocol: Some(OtlpProtocol::HttpProtobuf),
        resource: vec![("service.name".to_owned(), "flag".to_owned())],
        max_queue_size: Some(10),
        schedule_delay_ms: Some(7),
        max_export_batch_size: Some(5),
        url: None,
    };
    let variables = [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_SERVICE_NAME", "variable"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,zone=a%2Cb"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1"),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "250"),
    ];
    let settings = read(&options, &variables).unwrap().unwrap();
    assert_eq!(settings.protocol, OtlpProtocol::HttpProtobuf);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(settings.resource, [pair("service.name", "flag"), pair("zone", "a,b")]);
    let expected = QueueLimits {
        max_queue_size: 10,
        schedule_delay: Duration::from_millis(7),
        max_export_batch_size: 5,
        export_timeout: Duration::from_millis(250),
    };
    assert_eq!(settings.limits, expected);
    let settings = read_variables(&variables[1..6]);
    assert_eq!(settings.resource[0].1, "variable");
    assert_eq!(settings.limits.max_queue_size, 1);
}

#[test]
fn headers_compression_and_times() {
    let settings = read_variables(&[
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "api-key=s%20t, b = 2 ,"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
    ]);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(settings.headers, [pair("api-key", "s t"), pair("b", "2")]);
    assert_eq!(settings.timeout, Duration::from_millis(1500));
    assert!(settings.gzip);
    assert_eq!(settings.certificate, Some(PathBuf::from("ca.pem")));
}

#[test]
fn an_environment_that_switches_off() {
    for variable in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert_eq!(read(&ExporterOptions::default(), &[variable]), Ok(None), "{variable:?}");
    }
    let on = [("OTEL_SDK_DISABLED", "false"), ("OTEL_TRACES_EXPORTER", "otlp")];
    assert!(read(&ExporterOptions::default(), &on).unwrap().is_some());
}

#[test]
fn bad_values_name_their_variable() {
    let table = [
        ("OTEL_SDK_DISABLED", "yes", "got 'yes'"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "got 'zipkin'"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "got 'http/json'"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "udp", "got 'udp'"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "got 'localhost:4318'"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://", "got 'http://'"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http:///x", "got 'http:///x'"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "novalue", "key=value"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=%ff", "UTF-8"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "got '0'"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "got '10s'"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "got 'zstd'"),
        ("OTEL_RESOURCE_ATTRIBUTES", "=v", "key=value"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "got '-1'"),
        ("OTEL_BSP_SCHEDULE_DELAY", "x", "got 'x'"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4096", "queue of 2048"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "", "-"),
    ];
    for (name, value, found) in table {
        let result = read(&ExporterOptions::default(), &[(name, value)]);
        match result {
            Err(error) => assert!(error.contains(name) && error.contains(found), "{error}"),
            Ok(_) => assert_eq!(found, "-", "{name}={value}"),
        }
    }
}

#[test]
fn options_of_the_command_line() {
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let given = [
        ("url", "http://a:1/t"),
        ("protocol", "grpc"),
        ("resource", "service.name=x"),
        ("resource", "b=c=d"),
        ("bsp_max_queue_size", "9"),
        ("bsp_schedule_delay", "8"),
        ("bsp_max_export_batch_size", "7"),
    ];
    let options = ExporterOptions::from_pairs(&given.map(pair)).unwrap();
    let expected = ExporterOptions {
        url: Some("http://a:1/t".to_owned()),
        protocol: Some(OtlpProtocol::Grpc),
        resource: vec![pair(("service.name", "x")), pair(("b", "c=d"))],
        max_queue_size: Some(9),
        schedule_delay_ms: Some(8),
        max_export_batch_size: Some(7),
    };
    assert_eq!(options, expected);
    let bad = [
        ("url", "ftp://x", "got 'ftp://x'"),
        ("protocol", "http/json", "got 'http/json'"),
        ("resource", "novalue", "NAME=VALUE"),
        ("resource", "=v", "NAME=VALUE"),
        ("bsp_max_queue_size", "0", "got '0'"),
        ("bsp_schedule_delay", "1.5", "got '1.5'"),
        ("bsp_max_export_batch_size", "-1", "got '-1'"),
        ("exporter", "otlp", "the options are"),
    ];
    for (key, value, reason) in bad {
        let error = ExporterOptions::from_pairs(&[pair((key, value))]).unwrap_err();
        let subject = format!("--trace-config=opentelemetry,{key}={value}: ");
        assert!(error.starts_with(&subject) && error.contains(reason), "{error}");
    }
}
