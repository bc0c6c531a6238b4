//! `GET /v2/trtserver/memory`, an extension of this server: bytes by model, version and use.

use super::json::write::{Object, write_array};
use super::management_json::{write_nested_object, write_object};
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::heap;
use trtserver_base::ledger::ProcessMemory;
use trtserver_models::memory::{
    LoadGrowth, MemoryEntry, MemoryReport, ModelMemory, OwnerMemory, Totals,
};
use trtserver_wire::context::FrontendContext;

/// The response, as JSON. The counters of the kernel and the allocator take some time to read.
pub async fn memory_json(ctx: &FrontendContext) -> Result<Vec<u8>> {
    let models = Arc::clone(&ctx.models);
    let made = tokio::task::spawn_blocking(move || {
        text(&MemoryReport::new(&models, heap::read_heap_usage()))
    });
    made.await.map_err(|e| Error::internal(format!("the memory report failed: {e}")))
}

fn text(report: &MemoryReport) -> Vec<u8> {
    write_object(|o| {
        process(o.key("process"), &report.process);
        if let Some(heap) = report.heap {
            write_nested_object(o.key("allocator"), |o| {
                o.plain("in_use", heap.in_use);
                o.plain("free", heap.free);
                o.plain("mapped", heap.mapped);
            });
        }
        write_nested_object(o.key("pool"), |o| {
            o.plain("mapped", report.pool.mapped);
            o.plain("free", report.pool.free);
            o.plain("free_limit", report.pool.bound);
        });
        write_nested_object(o.key("budget"), |o| {
            o.plain("limit", report.limit);
            o.plain("in_use", report.in_use);
            o.plain("peak", report.peak);
        });
        totals(o, &report.totals());
        write_nested_object(o.key("server"), |o| owner(o, &report.server));
        write_array(o.key("models"), &report.models, model);
    })
}

fn model(out: &mut Vec<u8>, m: &ModelMemory) {
    write_nested_object(out, |o| {
        o.string("name", &m.model);
        if let Some(version) = m.version {
            o.string("version", &version.to_string());
        }
        if let Some(state) = m.state {
            o.string("state", state.name());
        }
        if !m.processes.is_empty() {
            write_array(o.key("processes"), &m.processes, process);
        }
        if !m.gpu_at_load.is_empty() {
            write_array(o.key("gpu_at_load"), &m.gpu_at_load, |out, growth: &LoadGrowth| {
                write_nested_object(out, |o| {
                    o.plain("id", growth.device);
                    o.plain("byte_size", growth.bytes);
                    o.plain("loads", growth.loads);
                });
            });
        }
        owner(o, &m.memory);
    });
}

fn process(out: &mut Vec<u8>, process: &ProcessMemory) {
    write_nested_object(out, |o| {
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
    write_array(o.key("memory"), &memory.entries, |out, entry: &MemoryEntry| {
        write_nested_object(out, |o| {
            o.string("holder", entry.holder);
            o.string("type", entry.memory_type);
            o.plain("id", entry.device);
            o.plain("byte_size", entry.bytes);
        });
    });
}

fn totals(o: &mut Object<'_>, totals: &Totals) {
    write_array(o.key("totals"), totals, |out, ((memory_type, device), bytes)| {
        write_nested_object(out, |o| {
            o.string("type", memory_type);
            o.plain("id", device);
            o.plain("byte_size", bytes);
        });
    });
}
