//! `GET /v2/trtserver/rate-limiter`, an extension of this server: the resources of the rate limiter,
//! who holds them and who waits for them; and the same of one version among its statistics.

use super::json::write::{Object, write_array};
use super::management_json::{duration, write_nested_object, write_object};
use trtserver_models::limiter::{
    LimitedName, LimiterReport, ResourceHolder, ResourceReport, ResourceScope, WaitingInstance,
};
use trtserver_proto::v2::RateLimiterStatistics;
use trtserver_proto::v2::rate_limiter_statistics::{Holder, Resource, Waiting};
use trtserver_wire::context::FrontendContext;

/// The response, as JSON.
pub fn rate_limiter_json(ctx: &FrontendContext) -> Vec<u8> {
    let report = ctx.models.limiter().map(|limiter| limiter.report());
    write_object(|o| match report {
        None => o.string("rate_limit", "off"),
        Some(report) => {
            o.string("rate_limit", "execution_count");
            write_array(o.key("resources"), &report.resources, resource);
            write_array(o.key("instances"), &report.instances, |out, of| {
                instance(out, of, &report);
            });
        }
    })
}

fn resource(out: &mut Vec<u8>, resource: &ResourceReport) {
    write_nested_object(out, |o| {
        named_resource(o, &resource.name, resource.scope);
        o.plain("count", resource.capacity);
        o.plain("in_use", resource.in_use);
        write_array(o.key("holders"), &resource.holders, |out, holder: &ResourceHolder| {
            write_nested_object(out, |o| {
                named_instance(o, &holder.name);
                o.plain("count", holder.count);
            });
        });
    });
}

fn instance(out: &mut Vec<u8>, instance: &WaitingInstance, report: &LimiterReport) {
    write_nested_object(out, |o| {
        named_instance(o, &instance.name);
        o.plain("priority", instance.priority);
        o.plain("executions", instance.executions);
        o.plain("waits", instance.waits);
        o.plain("waited_us", instance.waited_ns / 1000);
        o.plain("lending_executions", instance.lending);
        write_array(o.key("demand"), &instance.demand, |out, (name, scope, count)| {
            write_nested_object(out, |o| {
                named_resource(o, name, *scope);
                o.plain("count", count);
            });
        });
        if let Some(ns) = instance.waiting_ns {
            o.plain("waiting_us", ns / 1000);
            let lacking: Vec<_> =
                instance.waits_for.iter().filter_map(|at| report.resources.get(*at)).collect();
            write_array(o.key("waits_for"), &lacking, |out, of| {
                write_nested_object(out, |o| named_resource(o, &of.name, of.scope));
            });
        }
    });
}

fn named_instance(o: &mut Object<'_>, name: &LimitedName) {
    o.string("model", &name.model);
    o.string("version", &name.version.to_string());
    o.string("instance", &name.instance);
}

fn named_resource(o: &mut Object<'_>, name: &str, scope: ResourceScope) {
    o.string("name", name);
    match scope {
        ResourceScope::Global => o.plain("global", true),
        ResourceScope::Device(device) => o.plain("device", device),
    }
}

/// The statistics of a version, as JSON.
pub(super) fn write_limiter_statistics(out: &mut Vec<u8>, limiter: &RateLimiterStatistics) {
    write_nested_object(out, |o| {
        o.plain("execution_count", limiter.execution_count);
        duration(o.key("wait"), limiter.wait);
        write_array(o.key("waiting"), &limiter.waiting, |out, waiting: &Waiting| {
            write_nested_object(out, |o| {
                o.string("instance", &waiting.instance);
                o.plain("waiting_ns", waiting.waiting_ns);
                write_array(o.key("waits_for"), &waiting.waits_for, write_resource);
            });
        });
    });
}

fn write_resource(out: &mut Vec<u8>, resource: &Resource) {
    write_nested_object(out, |o| {
        o.string("name", &resource.name);
        match resource.global {
            true => o.plain("global", true),
            false => o.plain("device", resource.device),
        }
        o.plain("count", resource.count);
        o.plain("in_use", resource.in_use);
        write_array(o.key("holders"), &resource.holders, |out, holder: &Holder| {
            write_nested_object(out, |o| {
                o.string("model", &holder.model);
                o.string("version", &holder.version);
                o.string("instance", &holder.instance);
                o.plain("count", holder.count);
            });
        });
    });
}
