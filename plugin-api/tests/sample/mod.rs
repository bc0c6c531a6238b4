//! A backend that does what its model's or request's `do` says.

use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use trtserver_plugin_api::author::*;
use trtserver_plugin_api::{trts_info, trts_verbose};

pub static STORED: Mutex<Vec<Scope>> = Mutex::new(Vec::new());
pub static OWNERS: AtomicIsize = AtomicIsize::new(0);
pub static CANCELLED: AtomicBool = AtomicBool::new(false);

pub struct Sample;

impl Backend for Sample {
    type Model = SampleModel;
    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "sample_graph", default_file: "model.sample" }],
        required_extensions: &[Extension { name: "trts.metrics", version: 1 }],
        align: 16,
        preferred: &[PreferredGroup { kind: Kind::Cpu, count: 2 }],
        ..BackendInfo::new("sample", "1.2")
    };
    fn open(context: &BackendContext) -> Result<Self, Error> {
        assert_eq!((context.name(), context.dir()), ("x", "/plugins"));
        assert_eq!(context.setting("nothing"), None);
        Ok(Sample)
    }
    fn runtime(&self) -> String {
        "Sample 9".into()
    }
    fn model_probe<'a>(probe: ModelProbe<'a>) -> Result<Option<&'a str>, Error> {
        assert_eq!((probe.platform(), probe.default_file()), ("sample_graph", "model.sample"));
        let mut entries = probe.entries();
        match entries.find(|entry| entry.name.starts_with("sample_")) {
            Some(entry) if entry.is_dir => Ok(Some(entry.name)),
            Some(DirEntry { name: "sample_absent", .. }) => Ok(Some("absent")),
            Some(DirEntry { name: "sample_panic", .. }) => panic!("{}", "probe"),
            Some(entry) => Err(Error::invalid(format_args!("{} is a file", entry.name))),
            None => Ok(None),
        }
    }
    fn autocomplete(&self, model: &ModelContext) -> Result<Completion, Error> {
        match model.parameter("do") {
            Some("panic_complete") => panic!("{}", "complete"),
            Some("patch") => Ok(ConfigPatch::Text("max_batch_size: 4".into()).into()),
            Some("state") => Ok(Completion::default().with_state(Kept::new("read once"))),
            _ => Ok(Completion::default()),
        }
    }
}

/// Counts the states of `autocomplete` that exist.
pub static KEPT: AtomicIsize = AtomicIsize::new(0);

struct Kept(String);

impl Kept {
    fn new(text: &str) -> Self {
        KEPT.fetch_add(1, Ordering::Relaxed);
        Self(text.into())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

pub struct SampleModel {
    what: String,
}

impl Model for SampleModel {
    type Backend = Sample;
    type Instance = SampleInstance;
    fn open(_: &Arc<Sample>, context: &ModelContext) -> Result<Self, Error> {
        let what = context.parameter("do").unwrap_or("echo");
        match what {
            "fail_model" => return Err(Error::not_found("no weights").model_broken()),
            "panic_model" => panic!("model"),
            "state" => {
                assert!(context.state::<String>().is_none(), "another type");
                return match context.state::<Kept>() {
                    Some(kept) => Err(Error::invalid(&kept.0)),
                    None => Err(Error::invalid("no state")),
                };
            }
            "metrics" => {
                let labels = [("a", "1"), ("b", "2")];
                let counter = context.log().counter("sample_total", "help", &labels)?;
                counter.add(2.5);
                assert_eq!(counter.get(), 2.5);
            }
            _ => {}
        }
        assert_eq!((context.name(), context.version()), ("m", 3));
        let input = context.inputs().next().unwrap();
        assert_eq!((input.name(), input.dtype()), ("IN", Dtype::Fp32));
        assert_eq!(context.log().progress("loading", 1), what == "abandoned");
        trts_info!(context.log(), "doing {what}");
        trts_verbose!(context.log(), "{}", unreachable_text());
        STORED.lock().unwrap().push(context.log().clone());
        Ok(SampleModel { what: what.to_owned() })
    }
}

fn unreachable_text() -> &'static str {
    panic!("formatted a message of a disabled level")
}

impl Drop for SampleModel {
    fn drop(&mut self) {
        if self.what == "panic_close" {
            panic!("model drop");
        }
    }
}

pub struct SampleInstance {
    model: Arc<SampleModel>,
    threads: Vec<JoinHandle<()>>,
}

/// Counts live owners, so that tests can check that each is dropped exactly once.
struct Owner(Vec<u8>);

impl Owner {
    fn new(bytes: Vec<u8>) -> Owner {
        OWNERS.fetch_add(1, Ordering::SeqCst);
        Owner(bytes)
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        OWNERS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Instance for SampleInstance {
    type Model = SampleModel;

    fn open(model: &Arc<SampleModel>, context: &InstanceContext) -> Result<Self, Error> {
        match model.what.as_str() {
            "fail_instance" => return Err(Error::exhausted("no room")),
            "panic_instance" => std::panic::panic_any(7),
            _ => {}
        }
        assert_eq!((context.kind(), context.device_id(), context.threads()), (Kind::Cpu, None, 2));
        Ok(SampleInstance { model: model.clone(), threads: Vec::new() })
    }

    fn batch_sizes(&self) -> Vec<BatchSize> {
        let size = |rows| BatchSize { rows, pad: 0, run_ns: u64::from(rows) * 1000 };
        if self.model.what == "sizes" { vec![size(1), size(4)] } else { Vec::new() }
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        batch.set_times(1, 2, 3, batch.now_ns());
        if self.model.what.starts_with("merge") {
            return self.merge(batch);
        }
        for request in batch.requests() {
            let what = request.param("do").and_then(Value::text).unwrap_or(&self.model.what);
            let input = request.required_input("IN")?;
            let (shape, values) = (input.shape(), input.to_vec::<f32>()?);
            let bytes = input.to_bytes();
            match what {
                "error" => return Err(Error::unavailable("not now").retryable()),
                "panic_execute" => {
                    let _open = request.new_response()?;
                    panic!("execute {}", batch.id());
                }
                "fail_call" => request.fail(Error::invalid("bad request").by_client()),
                "never" => {}
                "adopt" => {
                    let mut response = request.new_response()?;
                    response.adopt("OUT", Dtype::Fp32, shape, Owner::new(bytes.clone()))?;
                    response.adopt("UNASKED", Dtype::Fp32, shape, Owner::new(bytes.clone()))?;
                    assert!(
                        response.adopt("REFUSED", Dtype::Fp32, shape, Owner::new(bytes)).is_err()
                    );
                    response.send()?;
                }
                "unasked" => {
                    let mut response = request.new_response()?;
                    assert!(
                        response.output_requested("OUT") && !response.output_requested("OTHER")
                    );
                    assert!(response.output("OTHER", Dtype::Fp32, shape, bytes.len())?.is_empty());
                    assert!(response.output_slice::<f32>("OTHER", shape)?.is_empty());
                    response.put("OTHER", shape, &values)?;
                    response.put("OUT", shape, &values)?;
                    response.send()?;
                }
                "stream" => {
                    for value in &values {
                        let mut response = request.new_response()?;
                        assert!(request.new_response().is_err(), "one at a time");
                        response.put("OUT", &[1], &[*value])?;
                        response.send_more()?;
                    }
                    request.finish();
                    assert!(request.new_response().is_err(), "it is over");
                }
                "detach" | "forget" => {
                    let forget = what == "forget";
                    let responder = request.detach()?;
                    assert!(request.new_response().is_err() && request.detach().is_err());
                    let shape = shape.to_vec();
                    self.threads.push(std::thread::spawn(move || {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        if !forget {
                            let mut response = responder.new_response().unwrap();
                            response.put("OUT", &shape, &values).unwrap();
                            response.send().unwrap();
                        }
                    }));
                }
                "cancelled" if request.is_cancelled() => request.fail(Error::cancelled("gone")),
                "strings" => {
                    assert!(input.strings().next().is_some_and(|s| s.is_err()), "not STRING");
                    let mut response = request.new_response()?;
                    response.put_strings("OUT", &[2], &["ab", ""])?;
                    response.send()?;
                }
                _ => {
                    assert!(input.as_slice::<i32>().is_err(), "another type");
                    let mut response = request.new_response()?;
                    let to = response.output_slice::<f32>("OUT", shape)?;
                    match input.as_slice::<f32>() {
                        Ok(one_piece) => to.copy_from_slice(one_piece),
                        Err(_) => to.copy_from_slice(&values),
                    }
                    response.param("rows", batch.rows() as u64)?;
                    response.send()?;
                }
            }
        }
        Ok(())
    }

    fn cancel_handler(&self) -> Option<CancelHandler> {
        let panics = self.model.what == "panic_cancel";
        Some(Box::new(move |_| {
            CANCELLED.store(true, Ordering::SeqCst);
            if panics {
                panic!("cancel");
            }
        }))
    }
}

impl SampleInstance {
    /// Scatters one output for all requests, except those with another command.
    fn merge(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        assert!(batch.gather(7).is_err());
        let input = batch.gather(0)?;
        assert_eq!((input.name(), input.dtype()), ("IN", Dtype::Fp32));
        assert!(input.as_slice::<i64>().is_err());
        let shape = input.shape();
        assert_eq!(shape, [batch.rows() as i64]);
        for request in batch.requests() {
            match request.param("do").and_then(Value::text) {
                Some("fail_call") => request.fail(Error::invalid("bad request")),
                Some("detach") => {
                    let responder = request.detach()?;
                    self.threads.push(std::thread::spawn(move || {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        let mut response = responder.new_response().unwrap();
                        response.put("OUT", &[1], &[-1.0f32]).unwrap();
                        response.send().unwrap();
                    }));
                }
                _ => {}
            }
        }
        assert!(batch.scatter("OTHER", Dtype::Fp32, shape, input.bytes().len())?.is_empty());
        if self.model.what == "merge_adopt" {
            let owner = || Owner::new(input.bytes().to_vec());
            batch.scatter_adopt("OUT", Dtype::Fp32, shape, owner())?;
            assert!(batch.scatter_adopt("OUT", Dtype::Fp32, shape, owner()).is_err());
        } else {
            batch.scatter_slice("OUT", shape)?.copy_from_slice(input.as_slice::<f32>()?);
        }
        if self.model.what == "merge_error" {
            return Err(Error::internal("in the end"));
        }
        Ok(())
    }
}

impl Drop for SampleInstance {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        if self.model.what == "panic_close" {
            panic!("instance drop");
        }
    }
}
