//! `GET /v2/trtserver/memory`, an extension of this server: bytes by model, version and use.

use super::json::write::{Object, array};
use super::management_json::{nested, object};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::heap;
use trtserver_base::ledger::ProcessMemory;
use trtserver_models::memory::{Entry, MemoryReport, ModelMemory, OwnerMemory, Totals};
use trtserver_wire::context::Context;

/// The response, as JSON. The counters of the kernel and the allocator take some time to read.
pub async fn respond(ctx: &Context) -> Result<Vec<u8>> {
    let models = Arc::clone(&ctx.models);
    let made =
        tokio::task::spawn_blocking(move || text(&MemoryReport::new(&models, heap::usage())));
    made.await.map_err(|e| Error::internal(format!("the memory report failed: {e}")))
}

fn text(report: &MemoryReport) -> Vec<u8> {
    object(|o| {
        process(o.key("process"), &report.process);
        if let Some(heap) = report.heap {
            nested(o.key("allocator"), |o| {
                o.plain("in_use", heap.in_use);
                o.plain("free", heap.free);
                o.plain("mapped", heap.mapped);
            });
        }
        nested(o.key("pool"), |o| {
            o.plain("mapped", report.pool.mapped);
            o.plain("free", report.pool.free);
            o.plain("free_limit", report.pool.bound);
        });
        nested(o.key("budget"), |o| {
            o.plain("limit", report.limit);
            o.plain("in_use", report.in_use);
            o.plain("peak", report.peak);
        });
        totals(o, &report.totals());
        nested(o.key("server"), |o| owner(o, &report.server));
        array(o.key("models"), &report.models, model);
    })
}

fn model(out: &mut Vec<u8>, m: &ModelMemory) {
    nested(out, |o| {
        o.string("name", &m.model);
        if let Some(version) = m.version {
            o.string("version", &version.to_string());
        }
        if let Some(state) = m.state {
            o.string("state", state.name());
        }
        if !m.processes.is_empty() {
            array(o.key("processes"), &m.processes, process);
        }
        owner(o, &m.memory);
    });
}

fn process(out: &mut Vec<u8>, process: &ProcessMemory) {
    nested(out, |o| {
        o.plain("resident", process.resident);
        o.plain("resident_peak", process.peak);
        o.plain("anonymous", process.anonymous);
        o.plain("file", process.file);
        o.plain("shared", process.shared);
    });
}

fn owner(o: &mut Object<'_>, memory: &OwnerMemory) {
    totals(o, &memory.totals());
    o.plain("budgeted", memory.budgeted);
    array(o.key("memory"), &memory.entries, |out, entry: &Entry| {
        nested(out, |o| {
            o.string("holder", entry.holder);
            o.string("type", entry.memory_type);
            o.plain("id", entry.device);
            o.plain("byte_size", entry.bytes);
        });
    });
}

fn totals(o: &mut Object<'_>, totals: &Totals) {
    array(o.key("totals"), totals, |out, ((memory_type, device), bytes)| {
        nested(out, |o| {
            o.string("type", memory_type);
            o.plain("id", device);
            o.plain("byte_size", bytes);
        });
    });
}
