//! Clients with sequences: one request at a time, or several sequences interleaved on a stream,
//! which is sometimes reset.

use super::calls::Wire;
use super::endpoint::{self, Endpoint};
use super::random::Random;
use super::request::{Model, SoakRequest};
use super::{Shared, grpc, with_timeout};
use std::rc::Rc;
use trtserver_proto::{v1, v2};

type Result<T> = std::result::Result<T, String>;

/// Open sequences on a stream.
const TOGETHER: usize = 4;
/// Stream resets per thousand rounds. The sequences keep their slots until the idle limit.
const CANCELLED: u64 = 30;

/// Generates the requests of one sequence.
struct Sequence {
    model: Model,
    id: u64,
    left: u64,
    sum: i32,
    begun: bool,
}

impl Sequence {
    fn new(model: Model, shared: &Shared, random: &mut Random) -> Sequence {
        let left = 1 + random.below(10);
        Sequence { model, id: shared.fresh_id(), left, sum: 0, begun: false }
    }

    fn step(&mut self, random: &mut Random) -> SoakRequest {
        let value = random.value();
        self.sum += value;
        self.left -= 1;
        let flags = (!self.begun, self.left == 0);
        self.begun = true;
        SoakRequest::step(self.model, self.id, value, self.sum, flags)
    }
}

/// Each request waits for the response to the one before.
pub async fn one_by_one(shared: Rc<Shared>, model: Model, endpoint: Endpoint, mut random: Random) {
    let client = format!("{} over {endpoint:?}", model.name());
    let mut wire = None;
    let mut sequence = Sequence::new(model, &shared, &mut random);
    while shared.another(1) {
        let request = sequence.step(&mut random);
        let one = async {
            let mut open = match wire.take() {
                Some(open) => open,
                None => Wire::open(&shared, endpoint).await?,
            };
            open.request(endpoint, &request).await.map(|()| Some(open))
        };
        match with_timeout(one).await {
            Ok(open) => {
                wire = open;
                shared.right(1);
            }
            Err(why) => {
                shared.wrong(&client, &why);
                sequence.left = 0;
            }
        }
        if sequence.left == 0 {
            sequence = Sequence::new(model, &shared, &mut random);
        }
    }
}

/// A round: interleaved requests of several sequences, all sent before the first response is read.
fn round(shared: &Shared, model: Model, random: &mut Random) -> Vec<SoakRequest> {
    let mut all: Vec<Sequence> =
        (0..TOGETHER).map(|_| Sequence::new(model, shared, random)).collect();
    let mut requests = Vec::new();
    while !all.is_empty() {
        let at = random.below(all.len() as u64) as usize;
        requests.push(all[at].step(random));
        if all[at].left == 0 {
            all.swap_remove(at);
        }
    }
    requests
}

/// An open stream and its connection.
struct Stream {
    _client: grpc::Client,
    call: grpc::Call,
}

impl Stream {
    async fn open(shared: &Shared, endpoint: Endpoint) -> Result<Stream> {
        let mut client = grpc::Client::connect(&shared.grpc).await?;
        let call = client.call(endpoint.path()).await?;
        Ok(Stream { _client: client, call })
    }

    fn send(&mut self, endpoint: Endpoint, q: &SoakRequest) -> Result<()> {
        if endpoint.is_v1() {
            self.call.send(&endpoint::v1_request(q), false)
        } else {
            self.call.send(&endpoint::v2_request(q), false)
        }
    }

    /// The next response must belong to this request.
    async fn receive(&mut self, endpoint: Endpoint, q: &SoakRequest) -> Result<()> {
        let ended = || "the stream has ended".to_owned();
        if endpoint.is_v1() {
            let response: v1::InferResponse = self.call.next().await?.ok_or_else(ended)?;
            return endpoint::check_v1(q, &response);
        }
        let response: v2::ModelStreamInferResponse = self.call.next().await?.ok_or_else(ended)?;
        match response.infer_response {
            Some(inner) if response.error_message.is_empty() => endpoint::check_v2(q, &inner),
            _ => Err(format!("{}: {}", q.model, response.error_message)),
        }
    }
}

pub async fn streaming(shared: Rc<Shared>, model: Model, endpoint: Endpoint, mut random: Random) {
    let client = format!("{} over {endpoint:?}", model.name());
    let mut stream: Option<Stream> = None;
    loop {
        let requests = round(&shared, model, &mut random);
        let count = requests.len() as u64;
        if !shared.another(count) {
            break;
        }
        // Responses that are read before the stream is reset.
        let cut = random.chance(CANCELLED).then(|| random.below(count));
        let one = async {
            let mut open = match stream.take() {
                Some(open) => open,
                None => Stream::open(&shared, endpoint).await?,
            };
            for request in &requests {
                open.send(endpoint, request)?;
            }
            let received = cut.unwrap_or(count) as usize;
            for request in &requests[..received] {
                open.receive(endpoint, request).await?;
                shared.right(1);
            }
            Ok(open)
        };
        match (with_timeout(one).await, cut) {
            (Ok(open), Some(read)) => {
                shared.cancelled(count - read);
                open.call.cancel();
            }
            (Ok(open), None) => stream = Some(open),
            (Err(why), _) => shared.wrong(&client, &why),
        }
    }
    let end = async {
        let Some(mut stream) = stream else { return Ok(()) };
        stream.call.finish()?;
        match stream.call.next::<v2::ModelStreamInferResponse>().await? {
            None => Ok(()),
            Some(_) => Err("a response without a request".to_owned()),
        }
    };
    if let Err(why) = with_timeout(end).await {
        shared.wrong(&client, &why);
    }
}
