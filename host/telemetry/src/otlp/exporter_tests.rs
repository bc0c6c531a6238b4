//! Unit tests of `exporter.rs`.

use super::*;
use crate::otlp::decoded::{ExportTraceServiceRequest, Value};
use crate::settings::OtlpProtocol;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

const LONG: Duration = Duration::from_secs(20);

/// Spans with a name only.
#[derive(Default)]
struct NamedSpans;

impl SpanEncoder for NamedSpans {
    type Source = usize;

    fn span_count(&self, count: &usize) -> usize {
        *count
    }

    fn encode_spans(&mut self, count: &usize, spans: &mut SpanBuffer) {
        (0..*count).for_each(|index| spans.add(|span| span.name(&index.to_string())));
    }
}

fn start(address: SocketAddr, limits: QueueLimits) -> SpanExporter<NamedSpans> {
    let settings = ExporterSettings {
        url: format!("http://{address}/v1/traces"),
        protocol: OtlpProtocol::HttpProtobuf,
        headers: Vec::new(),
        timeout: LONG,
        gzip: false,
        certificate: None,
        resource: vec![("service.name".to_owned(), "tests".to_owned())],
        limits,
    };
    SpanExporter::start(settings).unwrap()
}

fn limits(queue: usize, batch: usize, delay: Duration) -> QueueLimits {
    QueueLimits {
        max_queue_size: queue,
        max_export_batch_size: batch,
        schedule_delay: delay,
        export_timeout: LONG,
    }
}

/// Answers each request of one connection after another with the next of `answers`, and passes on
/// what arrived.
fn sink(answers: &'static [&'static str]) -> (SocketAddr, Receiver<ExportTraceServiceRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter().chain(std::iter::repeat(&"200 OK"));
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            while let Some(body) = read_request(&mut reader) {
                let answer = answers.next().unwrap();
                if *answer == "200 OK" {
                    sender.send(ExportTraceServiceRequest::decode(&body[..]).unwrap()).unwrap();
                }
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
                reader.get_mut().write_all(head.as_bytes()).unwrap();
            }
        }
    });
    (address, receiver)
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            return Some(body);
        }
    }
}

/// The names of a request's spans. It says which server sent it.
fn names(request: &ExportTraceServiceRequest) -> Vec<String> {
    let [of_server] = &request.resource_spans[..] else { panic!("{request:?}") };
    let resource = &of_server.resource.as_ref().unwrap().attributes[0];
    let value = resource.value.clone().unwrap().value;
    assert_eq!((&*resource.key, value), ("service.name", Some(Value::Text("tests".to_owned()))));
    let scope = of_server.scope_spans[0].scope.as_ref().unwrap();
    assert_eq!((&*scope.name, &*scope.version), ("trtserver", env!("CARGO_PKG_VERSION")));
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    spans.iter().map(|span| span.name.clone()).collect()
}

#[test]
fn full_batches_are_sent_at_once_and_the_rest_at_the_end() {
    let (address, received) = sink(&[]);
    let exporter = start(address, limits(100, 4, Duration::from_secs(3600)));
    exporter.offer(&10);
    assert_eq!(names(&received.recv_timeout(LONG).unwrap()), ["0", "1", "2", "3"]);
    assert_eq!(names(&received.recv_timeout(LONG).unwrap()), ["4", "5", "6", "7"]);
    exporter.shut_down(LONG);
    assert_eq!(names(&received.recv_timeout(LONG).unwrap()), ["8", "9"]);
    assert_eq!(exporter.stats().exported(), 10);
}

#[test]
fn a_partial_batch_is_sent_after_the_delay() {
    let (address, received) = sink(&[]);
    let exporter = start(address, limits(100, 50, Duration::from_millis(20)));
    exporter.offer(&3);
    assert_eq!(names(&received.recv_timeout(LONG).unwrap()).len(), 3);
    exporter.shut_down(LONG);
}

#[test]
fn what_a_busy_collector_refuses_is_sent_again() {
    let (address, received) = sink(&["503 Busy", "429 Busy", "200 OK", "400 Bad"]);
    let exporter = start(address, limits(100, 2, Duration::from_secs(3600)));
    exporter.offer(&2);
    assert_eq!(names(&received.recv_timeout(LONG).unwrap()), ["0", "1"]);
    exporter.offer(&1);
    exporter.shut_down(LONG);
    let stats = exporter.stats();
    assert_eq!((stats.exported(), stats.dropped(SpanDrop::ExportFailed)), (2, 1));
    use trtserver_base::telemetry_stats::ExportFailure::{Busy, Refused};
    assert_eq!((stats.failures(Busy), stats.failures(Refused)), (2, 1));
}

#[test]
fn a_full_queue_drops_and_counts_and_the_end_is_punctual() {
    // The first one stalls: it accepts connections and answers nothing. Nobody listens at the other.
    let stalled = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [stalled.local_addr().unwrap(), closed] {
        let exporter = start(address, limits(100, 10, Duration::from_millis(1)));
        let begun = Instant::now();
        for _ in 0..1000 {
            exporter.offer(&3);
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "an offer waited");
        exporter.shut_down(Duration::from_millis(50));
        assert!(begun.elapsed() < Duration::from_secs(10), "the end waited for the collector");
        let dropped = SpanDrop::ALL.map(|reason| exporter.stats().dropped(reason));
        assert_eq!(exporter.stats().exported(), 0);
        assert_eq!(dropped.iter().sum::<u64>(), 3000, "{dropped:?}");
        assert!(dropped[SpanDrop::QueueFull as usize] > 2000, "{dropped:?}");
        // An offer after the end is counted, too.
        exporter.offer(&1);
        assert_eq!(exporter.stats().dropped(SpanDrop::QueueFull), dropped[0] + 1);
    }
}
