//! Test rig of an isolated model: the host's side of its connections, with the child's side in the
//! hands of the test.

pub use super::exit_reason::KillReason;
use super::messages::{
    ControlResponse, EmptyMessage, ExecuteBatch, RequestMessage, control_request,
};
use super::process::Process;
use super::responses::{ResponseReader, Responses};
use super::wire::{socket_pair, split_socket};
use super::work_channel::{ChannelEnd, WorkReceiver, WorkSender, open_work_channel};
pub use super::work_channel::{MESSAGE, ON_SOCKET};
use super::work_connection::{SendOutcome, WorkConnection};
use super::{control, facts};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
pub use trtserver_base::arena::ring::{Kind, MAX_RECORD};
use trtserver_base::arena::ring::{RingPair, RingProducer};
use trtserver_base::arena::{Arena, ArenaBlock, ArenaReader, SharedRange};
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::backend_facts::BackendFacts;
use trtserver_request::InferRequest;

/// A process that has exited.
static EXITED: LazyLock<Child> = LazyLock::new(|| {
    let child = Command::new("true").spawn().unwrap();
    let (process, _) = Process::fake(&child);
    process.wait_for_end(None);
    child
});

/// A host with outstanding requests, and the child's end of its work connection.
pub struct WorkRig {
    pub connection: Arc<WorkConnection>,
    pub reader: ResponseReader,
    pub process: Arc<Process>,
    pub child_end: (WorkSender, WorkReceiver),
    /// The child's ends without framing.
    pub raw: UnixStream,
    pub ring: RingProducer,
    /// The arena of the child.
    pub outputs: Arc<Arena>,
    /// A zeroed block in it, always at the same offset.
    pub block: ArenaBlock,
}

/// A request as a message without tensors.
pub fn without_inputs(key: u64, _: &InferRequest) -> RequestMessage {
    RequestMessage { key, ..RequestMessage::default() }
}

impl WorkRig {
    /// The requests get the keys 1, 2, 3 and so on. `names` are the outputs by position.
    pub fn new(names: &[&str], mut requests: Vec<InferRequest>, limit: Option<Duration>) -> Self {
        let (process, _) = Process::fake(&EXITED);
        let (host_end, socket, file) = open_work_channel().unwrap();
        let (sender, ring, receiver) = host_end.split(limit).unwrap();
        let outputs = Arena::new("test", 1 << 21).unwrap();
        let memory = ArenaReader::new(&outputs.file().try_clone_to_owned().unwrap()).unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let responses = Responses::new(ring, &memory, &names);
        let reader = ResponseReader::new(&responses, receiver, limit).unwrap();
        let connection = WorkConnection::new(sender, Arc::clone(&process), 0, &responses);
        let block = outputs.alloc(64, true).unwrap();
        let raw = socket.try_clone().unwrap();
        let ring = RingPair::open(&file).unwrap().ends(false).0;
        let (to_host, from_host, of_socket) =
            ChannelEnd::other(socket, &file).unwrap().split(None).unwrap();
        let child_end = (to_host, WorkReceiver::new(from_host, of_socket, Duration::ZERO));
        let batch = &mut ExecuteBatch::default();
        assert!(
            connection.send(batch, &mut requests, None, true, without_inputs, |_| ()).unwrap()
                == SendOutcome::Delivered
        );
        Self { connection, reader, process, child_end, raw, ring, outputs, block }
    }

    /// Puts a record into the ring of the child, instead of `child_end`.
    pub fn push(&mut self, kind: Kind, bytes: &[u8]) {
        assert!(self.ring.push(kind, bytes).unwrap());
    }

    /// Shares the first `len` bytes of the block with the host.
    pub fn share(&self, len: usize) -> SharedRange {
        assert!(len <= self.block.len());
        // SAFETY: inside the block, which is the test's and zeroed.
        let bytes = unsafe { std::slice::from_raw_parts(self.block.ptr().as_ptr(), len) };
        self.outputs.share(bytes).unwrap()
    }

    /// Reads everything that the child has sent, then the end of the connection. Returns why the
    /// child was killed.
    pub fn finish(mut self) -> Option<KillReason> {
        self.child_end.0.shut_down();
        self.connection.read(&mut self.reader);
        self.connection.close();
        self.connection.outstanding.fail(&Error::internal("gone"));
        self.process.kill_reason()
    }
}

/// A socket takes this many bytes before they are read.
pub const MAX_BYTES: usize = 64 << 10;

/// What a host sees that waits for the responses to two control requests, numbers 1 and 2.
pub struct ControlOutcome {
    pub responses: [Option<ControlResponse>; 2],
    pub killed: Option<KillReason>,
    /// The last lines that the child has logged.
    pub tail: String,
}

/// What becomes of the bytes that a child sends over its control connection before it closes it.
pub fn control(bytes: &[u8]) -> ControlOutcome {
    let (process, _peer) = Process::fake(&EXITED);
    let requests = [(); 2].map(|()| {
        let describe = control_request::RequestKind::Describe(EmptyMessage {});
        process.request(describe, &[]).unwrap()
    });
    let (host_end, mut child_end) = socket_pair().unwrap();
    child_end.write_all(&bytes[..bytes.len().min(MAX_BYTES)]).unwrap();
    drop(child_end);
    control::read_control_messages(split_socket(host_end).1, &process, None);
    let responses = requests.map(|request| request.wait(Some(Duration::ZERO), || None).ok());
    ControlOutcome { responses, killed: process.kill_reason(), tail: process.tail.text() }
}

/// Facts of a backend as the host reads them from the response of a child.
///
/// # Errors
/// They are invalid.
pub fn backend_facts(response: ControlResponse) -> Option<Result<BackendFacts>> {
    response.backend.map(facts::to_backend_facts)
}
