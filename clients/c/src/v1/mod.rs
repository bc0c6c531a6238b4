//! v1 (TRTIS 2018 to 2020): calls of the server, and the inference context of a model.

mod client;
mod context;
mod result;
