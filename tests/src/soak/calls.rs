//! Callers that ask one thing after the other, over a connection of their own; some hang up before the answer.

use super::door::{self, Door};
use super::question::{Model, Question};
use super::random::Random;
use super::{Shared, grpc, http, patiently};
use std::rc::Rc;
use trtserver_proto::{v1, v2};

/// Of a thousand requests, so many are cancelled.
const CANCELLED: u64 = 50;

type Result<T> = std::result::Result<T, String>;

/// An open connection of either kind.
pub enum Wire {
    Http(http::Client),
    Grpc(grpc::Client),
}

impl Wire {
    pub async fn open(shared: &Shared, door: Door) -> Result<Wire> {
        if door.is_http() {
            return http::Client::connect(&shared.http).await.map(Wire::Http);
        }
        grpc::Client::connect(&shared.grpc).await.map(Wire::Grpc)
    }

    /// Asks and compares.
    pub async fn ask(&mut self, door: Door, q: &Question) -> Result<()> {
        match self {
            Wire::Http(client) => {
                client.send(&door.http(q)).await?;
                door.check_http(q, &client.body().await?)
            }
            Wire::Grpc(client) => {
                let mut call = client.call(door.path()).await?;
                if door.is_v1() {
                    call.send(&door::v1_request(q), true)?;
                    let answer: Option<v1::InferResponse> = call.next().await?;
                    door::check_v1(q, &answer.ok_or("an empty answer")?)?;
                } else {
                    call.send(&door::v2_request(q), true)?;
                    let answer: Option<v2::ModelInferResponse> = call.next().await?;
                    door::check_v2(q, &answer.ok_or("an empty answer")?)?;
                }
                match call.next::<v2::ModelInferResponse>().await? {
                    None => Ok(()),
                    Some(_) => Err("two answers to one question".to_owned()),
                }
            }
        }
    }

    /// Asks and goes away, after a moment or at once. The connection may be of no use any more.
    async fn ask_and_leave(
        mut self,
        door: Door,
        q: &Question,
        at_once: bool,
    ) -> Result<Option<Wire>> {
        match &mut self {
            Wire::Http(client) => {
                client.send(&door.http(q)).await?;
                if !at_once {
                    tokio::task::yield_now().await;
                }
                Ok(None)
            }
            Wire::Grpc(client) => {
                let mut call = client.call(door.path()).await?;
                if door.is_v1() {
                    call.send(&door::v1_request(q), true)?;
                } else {
                    call.send(&door::v2_request(q), true)?;
                }
                if !at_once {
                    tokio::task::yield_now().await;
                }
                call.cancel();
                Ok(Some(self))
            }
        }
    }
}

pub async fn caller(shared: Rc<Shared>, model: Model, door: Door, mut random: Random) {
    let who = format!("{} over {door:?}", model.name());
    let mut wire = None;
    while shared.another(1) {
        let question = Question::any(model, &mut random);
        let leaves = random.once_in_a_while(CANCELLED);
        let at_once = random.once_in_a_while(500);
        let one = async {
            let mut open = match wire.take() {
                Some(open) => open,
                None => Wire::open(&shared, door).await?,
            };
            if leaves {
                return open.ask_and_leave(door, &question, at_once).await;
            }
            open.ask(door, &question).await.map(|()| Some(open))
        };
        match patiently(one).await {
            Ok(open) => {
                wire = open;
                if leaves { shared.cancelled(1) } else { shared.right(1) }
            }
            Err(why) => shared.wrong(&who, &why),
        }
    }
}
