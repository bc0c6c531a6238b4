//! The HTTP API as an OpenAPI 3.1 document: `GET /v2/docs`, and per model with its signature.
//!
//! [`ROUTES_V2`], [`ROUTES_V1`] and the routes of the server itself are tables; tests of the
//! frontends compare the first two with their routers. `schemas.json` has the bodies. [`document`]
//! makes the document of the server from them, [`model_document`] that of a model.
//!
//! Terms: a *route* is a method and a path, whose part in brackets may be left out; an *answer* is
//! the body of a success; *failures* are the other statuses that a route may have.

#![forbid(unsafe_code)]

pub mod document;
pub mod model_document;
mod route;
mod routes_server;
mod routes_v1;
mod routes_v2;
mod tensor_schema;

pub use document::ServerFacts;
pub use model_document::{ModelFacts, TensorFacts};
pub use route::RouteSpec;
pub use routes_v1::ROUTES_V1;
pub use routes_v2::ROUTES_V2;
