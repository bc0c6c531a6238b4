//! A minimal host: starts `trtserver plugin-host` and sends it the messages of a server, or
//! malformed ones.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::arena::{Arena, ArenaBlock, ArenaReader};
use trtserver_isolation::messages::control_message::MessageKind;
use trtserver_isolation::messages::*;
use trtserver_isolation::wire::{ReceiveOutcome, Receiver, Sender, socket_pair, split_socket};
use trtserver_isolation::work_channel::{WorkReceiver, WorkSender, open_work_channel};
use trtserver_proto::v2::ModelConfig;
use trtserver_request::DType;
use trtserver_tests::{TIMEOUT, backends, dist};

/// The process and its control connection.
pub struct Host {
    child: Child,
    sender: Option<Sender>,
    receiver: Receiver,
    number: u64,
    /// Control messages other than responses.
    pub received: Vec<MessageKind>,
    /// The arenas of the inputs and of the outputs.
    pub arenas: [Arc<Arena>; 2],
}

pub fn command() -> Command {
    let mut command = Command::new(dist().join("bin/trtserver"));
    command.arg("plugin-host");
    command
}

impl Host {
    /// Starts the child and sends the handshake.
    pub fn start() -> Self {
        let (ours, theirs) = socket_pair().unwrap();
        let mut command = command();
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, mut receiver) = split_socket(ours);
        receiver.set_timeout(Some(TIMEOUT)).unwrap();
        let arenas = ["inputs", "outputs"].map(|name| Arena::new(name, 1 << 30).unwrap());
        let mut host =
            Self { child, sender: Some(sender), receiver, number: 0, received: Vec::new(), arenas };
        let file = backends().join("probe/libtrtserver_probe.so").to_str().unwrap().to_owned();
        let devices = DeviceFacts { disabled: true, ..DeviceFacts::default() };
        let handshake =
            Handshake { file, settings: BTreeMap::new(), log_level: 3, devices, adapted: None };
        assert_eq!(host.request(control_request::RequestKind::Handshake(handshake)).failure, None);
        host
    }

    pub fn send(&mut self, kind: Option<control_request::RequestKind>, files: &[&OwnedFd]) -> u64 {
        self.number += 1;
        let files: Vec<_> = files.iter().map(|f| f.as_fd()).collect();
        let request = ControlRequest { number: self.number, kind };
        self.sender.as_ref().unwrap().send_with(&request, &files).unwrap();
        self.number
    }

    pub fn request(&mut self, kind: control_request::RequestKind) -> ControlResponse {
        let number = self.send(Some(kind), &[]);
        self.response(number)
    }

    pub fn response(&mut self, number: u64) -> ControlResponse {
        loop {
            match self.receive() {
                MessageKind::Response(response) if response.number == number => return response,
                MessageKind::Response(other) => panic!("unexpected: {other:?}"),
                other => self.received.push(other),
            }
        }
    }

    pub fn receive(&mut self) -> MessageKind {
        match self.receiver.receive::<ControlMessage>().unwrap() {
            ReceiveOutcome::Message(message) => message.kind.unwrap(),
            other => panic!("{other:?}; standard error: {}", self.stderr()),
        }
    }

    /// Opens a model.
    pub fn open(&mut self, config: &str) -> Result<(), FailureMessage> {
        let facts = facts(config);
        self.open_with(facts)
    }

    pub fn open_with(&mut self, facts: ModelFacts) -> Result<(), FailureMessage> {
        let files = self.arenas.each_ref().map(|a| a.file().try_clone_to_owned().unwrap());
        let [inputs, outputs] = &files;
        let number =
            self.send(Some(control_request::RequestKind::OpenModel(facts)), &[inputs, outputs]);
        self.response(number).failure.map_or(Ok(()), Err)
    }

    pub fn instance(&mut self, ordinal: u32) -> Result<Instance, FailureMessage> {
        let (ours, theirs, rings) = open_work_channel().unwrap();
        let facts = InstanceFacts {
            name: format!("m_{ordinal}"),
            kind: 2,
            ordinal,
            device: -1,
            threads: 1,
            max_rows: 8,
            profiles: vec![],
            nice: 0,
            host_policy: "cpu".to_owned(),
            host_settings: BTreeMap::new(),
            load_limit: None,
            secondary_devices: Vec::new(),
        };
        let open = control_request::RequestKind::OpenInstance(facts);
        let number = self.send(Some(open), &[&OwnedFd::from(theirs), &rings]);
        if let Some(failure) = self.response(number).failure {
            return Err(failure);
        }
        let (sender, ring, mut receiver) = ours.split(Some(TIMEOUT)).unwrap();
        receiver.set_timeout(Some(TIMEOUT)).unwrap();
        let receiver = WorkReceiver::new(ring, receiver, Duration::ZERO);
        let reader =
            ArenaReader::new(&self.arenas[1].file().try_clone_to_owned().unwrap()).unwrap();
        let inputs = Arc::clone(&self.arenas[0]);
        Ok(Instance { sender, receiver, inputs, reader })
    }

    /// The probe with these parameters and one instance.
    pub fn probe(parameters: &[(&str, &str)]) -> (Self, Instance) {
        let mut host = Self::start();
        host.open(&trtserver_tests::probe("m", parameters)).unwrap();
        let instance = host.instance(0).unwrap();
        (host, instance)
    }

    pub fn cancel(&mut self, ordinal: u32, key: u64) {
        let kind = Some(control_request::RequestKind::Cancel(CancelMessage { ordinal, key }));
        self.sender.as_ref().unwrap().send(&ControlRequest { number: 0, kind }).unwrap();
    }

    /// Closes the control connection.
    pub fn disconnect(&mut self) {
        self.sender.take().unwrap().shut_down();
    }

    /// Sends bytes that are not a message.
    pub fn send_malformed(&mut self) {
        // A text in field 1, which is a number in `ControlRequest`.
        self.sender.as_ref().unwrap().send(&"text".to_owned()).unwrap();
    }

    pub fn close(&mut self) -> ExitStatus {
        assert_eq!(
            self.request(control_request::RequestKind::Close(EmptyMessage {})).failure,
            None
        );
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Resident memory in KiB.
    pub fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The facts that a server sends for a configuration without sequences.
pub fn facts(config: &str) -> ModelFacts {
    use prost::Message;
    let config: ModelConfig = trtserver_proto::text::parse(config).unwrap();
    let spec = |name: &str, dtype: i32, dims: &[i64]| TensorSpec {
        name: name.into(),
        dtype: dtype as u32,
        dims: dims.to_vec(),
        ..TensorSpec::default()
    };
    let inputs: Vec<_> = config.input.iter().map(|i| spec(&i.name, i.data_type, &i.dims)).collect();
    let outputs: Vec<_> =
        config.output.iter().map(|o| spec(&o.name, o.data_type, &o.dims)).collect();
    ModelFacts {
        name: config.name.clone(),
        version: 1,
        config: config.encode_to_vec(),
        n_instances: 1,
        threads: 1,
        n_declared_inputs: inputs.len() as u32,
        n_declared_outputs: outputs.len() as u32,
        inputs,
        outputs,
        ..ModelFacts::default()
    }
}

/// An instance's work connection.
pub struct Instance {
    pub sender: WorkSender,
    receiver: WorkReceiver,
    inputs: Arc<Arena>,
    pub reader: Arc<ArenaReader>,
}

impl Instance {
    /// A block with this content.
    pub fn block(&self, data: &[u8]) -> ArenaBlock {
        let block = self.inputs.alloc(data.len(), false).unwrap();
        // SAFETY: the block belongs to this test and has this many bytes.
        unsafe { block.ptr().as_ptr().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        block
    }

    /// Shares a tensor with the child.
    pub fn input(&self, index: u32, shape: &[i64], data: &[u8]) -> InputMessage {
        let block = self.block(data);
        // SAFETY: the block belongs to this test, was filled with this many bytes, and lives until
        // the end of the call.
        let bytes = unsafe { std::slice::from_raw_parts(block.ptr().as_ptr(), data.len()) };
        let shared = self.inputs.share(bytes).unwrap();
        let (offset, bytes, slot) = (shared.offset, data.len() as u64, shared.slot);
        InputMessage { index, shape: shape.to_vec(), offset, bytes, slot, region: 0 }
    }

    /// A request with one row of floats for INPUT0 and commands to the probe.
    pub fn message(&self, key: u64, values: &[f32], commands: &[(&str, &str)]) -> RequestMessage {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        RequestMessage {
            key,
            batch: 1,
            received_ns: 1,
            queued_ns: 2,
            inputs: vec![self.input(0, &[1, values.len() as i64], &data)],
            requested_outputs: vec![0, 0],
            params: commands.iter().map(|(k, v)| parameter(k, v)).collect(),
            ..RequestMessage::default()
        }
    }

    pub fn send(&self, requests: Vec<RequestMessage>) {
        self.sender.send(&ExecuteBatch { id: 1, requests, ..ExecuteBatch::default() }).unwrap();
    }

    pub fn response(&mut self) -> ResponseMessage {
        match self.receiver.receive::<ResponseMessage>().unwrap() {
            ReceiveOutcome::Message(response) => response,
            other => panic!("{other:?}"),
        }
    }

    /// Asserts that the connection is closed.
    pub fn assert_closed(&mut self) {
        assert_eq!(self.receiver.receive::<ResponseMessage>().unwrap(), ReceiveOutcome::Closed);
    }

    /// The bytes of an output; releases the reference to them.
    pub fn read(&self, output: &OutputMessage) -> Vec<u8> {
        self.reader.bytes(output.offset, output.bytes, Some(output.slot)).unwrap().to_vec()
    }

    /// The floats of a response with one output.
    pub fn floats(&self, response: &ResponseMessage) -> Vec<f32> {
        assert_eq!(response.failure, None);
        let data = response.data.as_ref().unwrap();
        let [output] = &data.outputs[..] else { panic!("{data:?}") };
        assert_eq!((output.index, output.dtype), (0, DType::Fp32.number()));
        let bytes = self.read(output);
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

fn parameter(key: &str, value: &str) -> ParamMessage {
    let value = match (value.parse(), value.parse()) {
        (Ok(yes), _) => param::ParamValue::Bool(yes),
        (_, Ok(number)) => param::ParamValue::Int(number),
        _ => param::ParamValue::String(value.into()),
    };
    ParamMessage { key: key.into(), value: Some(value) }
}
