//! Sequences over ModelStreamInfer: one stream each, the next request sent when the response
//! arrives.

use super::grpc::{connect, refused, request, runtime};
use super::{Meter, Pass, STREAMS_PER_CONNECTION, TIMEOUT, WARM_UP};
use crate::Result;
use crate::exchange::Exchange;
use bytes::{Buf, Bytes, BytesMut};
use h2::RecvStream;
use h2::client::SendRequest;
use http::Request;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use tokio::task::{JoinSet, LocalSet};

/// Length of a message prefix.
const PREFIX: usize = 5;

/// The requests of each sequence, which starts over after the last.
pub fn run(address: SocketAddr, sequences: &[Vec<Exchange>], meter: Meter) -> Result<Pass> {
    let limit = WARM_UP + meter.length + TIMEOUT;
    let meter = Rc::new(RefCell::new(meter));
    let work = async {
        let mut workers = JoinSet::new();
        for some in sequences.chunks(STREAMS_PER_CONNECTION) {
            let sender = connect(address).await?;
            for steps in some {
                let path = steps.first().map_or("", |step| &step.path);
                let request = request(address, path)?;
                let (sender, meter) = (sender.clone(), Rc::clone(&meter));
                workers.spawn_local(worker(sender, request, steps.clone(), meter));
            }
        }
        let mut pass = Err("nothing to do".to_owned());
        while let Some(result) = workers.join_next().await {
            pass = Ok(result.map_err(|e| e.to_string())??);
        }
        pass
    };
    let (runtime, tasks) = (runtime()?, LocalSet::new());
    let pass = tasks.block_on(&runtime, async { tokio::time::timeout(limit, work).await });
    pass.unwrap_or_else(|_| Err(format!("no response within {} s", TIMEOUT.as_secs())))
}

/// Runs until the pass is over and the sequence has ended. A sequence that is cut off would keep
/// its slot, and its late cancellation would end the next sequence of its id.
async fn worker(
    sender: SendRequest<Bytes>,
    request: Request<()>,
    steps: Vec<Exchange>,
    meter: Rc<RefCell<Meter>>,
) -> Result<Pass> {
    let text = |e: h2::Error| e.to_string();
    let mut sender = sender.ready().await.map_err(text)?;
    let (response, mut stream) = sender.send_request(request, false).map_err(text)?;
    let (mut response, mut body) = (Some(response), None);
    let mut received = BytesMut::new();
    let mut over = false;
    for (number, step) in steps.iter().enumerate().cycle() {
        let sent_at = Instant::now();
        stream.send_data(step.message.clone(), false).map_err(text)?;
        // Headers may arrive with the first response.
        if let Some(response) = response.take() {
            let (head, responses) = response.await.map_err(text)?.into_parts();
            if head.status != 200 {
                return Err(format!("HTTP status {}", head.status));
            }
            refused(&head.headers)?;
            body = Some(responses);
        }
        let responses = body.as_mut().ok_or("no responses")?;
        let message = next(responses, &mut received).await?;
        step.expect.check(&message)?;
        over |= !meter.borrow_mut().record(sent_at, PREFIX + message.len())?;
        if over && number + 1 == steps.len() {
            let pass = meter.borrow().result();
            // The stream is closed normally, so that nothing is cancelled.
            stream.send_data(Bytes::new(), true).map_err(text)?;
            while responses.data().await.is_some() {}
            return pass;
        }
    }
    Err("no steps".to_owned())
}

/// One message without its prefix.
async fn next(responses: &mut RecvStream, received: &mut BytesMut) -> Result<BytesMut> {
    let text = |e: h2::Error| e.to_string();
    loop {
        if let Some(prefix) = received.first_chunk::<PREFIX>() {
            let [_, length @ ..] = *prefix;
            let length = u32::from_be_bytes(length) as usize;
            if received.len() >= PREFIX + length {
                received.advance(PREFIX);
                return Ok(received.split_to(length));
            }
        }
        let Some(chunk) = responses.data().await else {
            let trailers = responses.trailers().await.map_err(text)?;
            trailers.as_ref().map_or(Ok(()), refused)?;
            return Err("the server ended the stream".to_owned());
        };
        let chunk = chunk.map_err(text)?;
        responses.flow_control().release_capacity(chunk.len()).map_err(text)?;
        received.extend_from_slice(&chunk);
    }
}
