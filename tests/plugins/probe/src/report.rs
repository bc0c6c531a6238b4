//! The output BATCH, which describes the batch of a request.

use crate::Echo;
use trtserver_plugin_api::author::{Batch, Dtype, Error, Request};

pub const BATCH: &str = "BATCH";

/// Whether any byte of the request's tensor of that name is not 0. `None`: there is no such tensor.
pub fn control(request: Request<'_>, name: &str) -> Option<bool> {
    request.input(name).map(|input| input.to_bytes().iter().any(|byte| *byte != 0))
}

/// `a:1,b:2,-:1`: each request's id (or `#` and its sequence) and rows; `-` for one that is not
/// READY.
pub fn composition(batch: &Batch<'_>) -> String {
    let one = |request: Request<'_>| {
        let rows = request.batch_size();
        if control(request, "READY") == Some(false) {
            return format!("-:{rows}");
        }
        match (request.id(), request.correlation_id_string(), request.correlation_id()) {
            ("", "", 0) => format!("?:{rows}"),
            ("", "", number) => format!("#{number}:{rows}"),
            ("", text, _) => format!("#{text}:{rows}"),
            (id, _, _) => format!("{id}:{rows}"),
        }
    };
    batch.requests().map(one).collect::<Vec<_>>().join(",")
}

/// Type, shape and bytes of BATCH in that many rows: INT32 rows and requests of the batch, or,
/// where the model declares it as STRING, its composition.
pub fn report(
    model: &Echo,
    batch: &Batch<'_>,
    rows: usize,
) -> Result<(Dtype, Vec<i64>, Vec<u8>), Error> {
    let (dtype, width, row) = if model.report == Some(Dtype::String) {
        let text = composition(batch);
        let n = u32::try_from(text.len()).map_err(|_| Error::internal("a very large batch"))?;
        (Dtype::String, 1, [&n.to_le_bytes(), text.as_bytes()].concat())
    } else {
        let facts = [batch.rows() as i32, batch.len() as i32];
        (Dtype::Int32, 2, facts.iter().flat_map(|fact| fact.to_le_bytes()).collect())
    };
    if model.batches {
        return Ok((dtype, vec![rows as i64, width], row.repeat(rows)));
    }
    Ok((dtype, vec![width], row))
}
