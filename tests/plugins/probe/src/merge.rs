//! Responds to a whole batch: inputs gathered, outputs scattered.

use crate::Echo;
use crate::commands::{Commands, Record};
use crate::report::{BATCH, composition, report};
use crate::respond::counterpart;
use trtserver_plugin_api::author::{Batch, Error, Request};

/// Output i is input i of all requests, except those with a command to fail.
pub fn respond(
    model: &Echo,
    batch: &Batch<'_>,
    all: &[(Request<'_>, Commands)],
) -> Result<(), Error> {
    let Some((first, _)) = all.first() else { return Ok(()) };
    for (position, input) in first.inputs().enumerate() {
        let Some(output) = counterpart(model, input) else { continue };
        let given = batch.gather(position)?;
        if all.iter().any(|(_, commands)| commands.adopt) {
            let bytes = given.bytes().to_vec();
            batch.scatter_adopt(output, given.dtype(), given.shape(), bytes)?;
            continue;
        }
        let to = batch.scatter(output, given.dtype(), given.shape(), given.bytes().len())?;
        if to.len() == given.bytes().len() {
            to.copy_from_slice(given.bytes());
        }
    }
    if all.iter().any(|(_, commands)| commands.reports()) {
        let (dtype, shape, bytes) = report(model, batch, batch.rows())?;
        let to = batch.scatter(BATCH, dtype, &shape, bytes.len())?;
        if to.len() == bytes.len() {
            to.copy_from_slice(&bytes);
        }
    }
    for (request, commands) in all {
        if commands.record == Some(Record::Failure) {
            request.fail(commands.error(&composition(batch)));
        } else if let Some(text) = &commands.fail {
            request.fail(commands.error(text));
        }
    }
    Ok(())
}
