//! What v1 answers, whatever wire the call came by (contract/v1). HTTP and gRPC are thin skins over this.

pub mod code; // request statuses
pub mod control; // profile, model control, shared memory, repository index
pub mod data; // a request's bytes against what its header announced
pub mod header; // header texts in one line
pub mod health; // live, ready
pub mod request; // the error ladder: from a request's header to what it asks for
pub mod response; // outputs to response header and raw parts
pub mod run; // a request with its data into the scheduler
pub mod status; // ServerStatus

#[cfg(test)]
pub mod testing; // a context with one model that answers by itself
