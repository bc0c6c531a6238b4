//! Clients of stateless models: one request at a time on a connection of its own; some disconnect
//! before the response.

use super::endpoint::{self, Endpoint};
use super::random::Random;
use super::request::{Model, SoakRequest};
use super::{Shared, grpc, http, with_timeout};
use std::rc::Rc;
use trtserver_proto::{v1, v2};

/// Cancelled requests per thousand.
const CANCELLED: u64 = 50;

type Result<T> = std::result::Result<T, String>;

/// An open HTTP or gRPC connection.
pub enum Wire {
    Http(http::Client),
    Grpc(grpc::Client),
}

impl Wire {
    pub async fn open(shared: &Shared, endpoint: Endpoint) -> Result<Wire> {
        if endpoint.is_http() {
            return http::Client::connect(&shared.http).await.map(Wire::Http);
        }
        grpc::Client::connect(&shared.grpc).await.map(Wire::Grpc)
    }

    /// Sends the request and checks the response.
    pub async fn request(&mut self, endpoint: Endpoint, q: &SoakRequest) -> Result<()> {
        match self {
            Wire::Http(client) => {
                client.send(&endpoint.http(q)).await?;
                endpoint.check_http(q, &client.body().await?)
            }
            Wire::Grpc(client) => {
                let mut call = client.call(endpoint.path()).await?;
                if endpoint.is_v1() {
                    call.send(&endpoint::v1_request(q), true)?;
                    let response: Option<v1::InferResponse> = call.next().await?;
                    endpoint::check_v1(q, &response.ok_or("an empty response")?)?;
                } else {
                    call.send(&endpoint::v2_request(q), true)?;
                    let response: Option<v2::ModelInferResponse> = call.next().await?;
                    endpoint::check_v2(q, &response.ok_or("an empty response")?)?;
                }
                match call.next::<v2::ModelInferResponse>().await? {
                    None => Ok(()),
                    Some(_) => Err("two responses to one request".to_owned()),
                }
            }
        }
    }

    /// Sends the request and cancels it at once or after a moment. The connection may be unusable
    /// afterwards.
    async fn send_and_cancel(
        mut self,
        endpoint: Endpoint,
        q: &SoakRequest,
        at_once: bool,
    ) -> Result<Option<Wire>> {
        match &mut self {
            Wire::Http(client) => {
                client.send(&endpoint.http(q)).await?;
                if !at_once {
                    tokio::task::yield_now().await;
                }
                Ok(None)
            }
            Wire::Grpc(client) => {
                let mut call = client.call(endpoint.path()).await?;
                if endpoint.is_v1() {
                    call.send(&endpoint::v1_request(q), true)?;
                } else {
                    call.send(&endpoint::v2_request(q), true)?;
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

pub async fn client(shared: Rc<Shared>, model: Model, endpoint: Endpoint, mut random: Random) {
    let client = format!("{} over {endpoint:?}", model.name());
    let mut wire = None;
    while shared.another(1) {
        let request = SoakRequest::any(model, &mut random);
        let cancels = random.chance(CANCELLED);
        let at_once = random.chance(500);
        let one = async {
            let mut open = match wire.take() {
                Some(open) => open,
                None => Wire::open(&shared, endpoint).await?,
            };
            if cancels {
                return open.send_and_cancel(endpoint, &request, at_once).await;
            }
            open.request(endpoint, &request).await.map(|()| Some(open))
        };
        match with_timeout(one).await {
            Ok(open) => {
                wire = open;
                if cancels { shared.cancelled(1) } else { shared.right(1) }
            }
            Err(why) => shared.wrong(&client, &why),
        }
    }
}
