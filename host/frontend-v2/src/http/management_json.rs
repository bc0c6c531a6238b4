//! Responses of all endpoints but inference as JSON, with keys in the order of the protocol text.

use super::json::write::{Object, write_array, write_shape, write_string};
use super::rate_limiter::write_limiter_statistics;
use crate::trace_settings::TraceSetting;
use trtserver_proto::v2::log_settings_response::setting_value::ParameterChoice as Log;
use trtserver_proto::v2::{
    ModelMetadataResponse, ModelStatistics, ServerMetadataResponse, StatisticDuration,
    model_metadata_response::TensorMetadata, repository_index_response::ModelIndex,
};

/// The text of an object that `fill` writes.
pub(super) fn write_object(fill: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write_nested_object(&mut out, fill);
    out
}

pub(super) fn write_nested_object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    let mut object = Object::new(out);
    fill(&mut object);
    object.end();
}

fn strings(out: &mut Vec<u8>, items: &[String]) {
    write_array(out, items, |out, item| write_string(out, item.as_bytes()));
}

pub fn error_json(message: &str) -> Vec<u8> {
    write_object(|o| o.string("error", message))
}

pub fn server_metadata_json(m: &ServerMetadataResponse) -> Vec<u8> {
    write_object(|o| {
        o.string("name", &m.name);
        o.string("version", &m.version);
        strings(o.key("extensions"), &m.extensions);
    })
}

/// The list of models of KServe.
pub fn model_names_json(names: &[String]) -> Vec<u8> {
    write_object(|o| {
        write_array(o.key("models"), names, |out, name| write_string(out, name.as_bytes()));
    })
}

pub fn model_metadata_json(m: &ModelMetadataResponse) -> Vec<u8> {
    let tensors = |out: &mut Vec<u8>, tensors: &[TensorMetadata]| {
        write_array(out, tensors, |out, t| {
            write_nested_object(out, |o| {
                o.string("name", &t.name);
                o.string("datatype", &t.datatype);
                write_shape(o.key("shape"), &t.shape);
            });
        });
    };
    write_object(|o| {
        o.string("name", &m.name);
        strings(o.key("versions"), &m.versions);
        o.string("platform", &m.platform);
        tensors(o.key("inputs"), &m.inputs);
        tensors(o.key("outputs"), &m.outputs);
    })
}

pub fn repository_index_json(models: &[ModelIndex]) -> Vec<u8> {
    let mut out = Vec::new();
    write_array(&mut out, models, |out, m| {
        write_nested_object(out, |o| {
            o.string("name", &m.name);
            for (key, value) in
                [("version", &m.version), ("state", &m.state), ("reason", &m.reason)]
            {
                if !value.is_empty() {
                    o.string(key, value);
                }
            }
        });
    });
    out
}

pub fn statistics_json(models: &[ModelStatistics]) -> Vec<u8> {
    write_object(|o| write_array(o.key("model_stats"), models, write_model_statistics))
}

fn write_model_statistics(out: &mut Vec<u8>, m: &ModelStatistics) {
    write_nested_object(out, |o| {
        o.string("name", &m.name);
        o.string("version", &m.version);
        o.plain("last_inference", m.last_inference);
        o.plain("inference_count", m.inference_count);
        o.plain("execution_count", m.execution_count);
        let s = m.inference_stats.unwrap_or_default();
        durations(
            o.key("inference_stats"),
            &[
                ("success", s.success),
                ("fail", s.fail),
                ("queue", s.queue),
                ("compute_input", s.compute_input),
                ("compute_infer", s.compute_infer),
                ("compute_output", s.compute_output),
                ("cache_hit", s.cache_hit),
                ("cache_miss", s.cache_miss),
            ],
        );
        write_nested_object(o.key("response_stats"), |o| {
            for (response, s) in &m.response_stats {
                durations(
                    o.key(response),
                    &[
                        ("compute_infer", s.compute_infer),
                        ("compute_output", s.compute_output),
                        ("success", s.success),
                        ("fail", s.fail),
                        ("empty_response", s.empty_response),
                        ("cancel", s.cancel),
                    ],
                );
            }
        });
        write_array(o.key("batch_stats"), &m.batch_stats, |out, b| {
            write_nested_object(out, |o| {
                o.plain("batch_size", b.batch_size);
                for (key, value) in [
                    ("compute_input", b.compute_input),
                    ("compute_infer", b.compute_infer),
                    ("compute_output", b.compute_output),
                ] {
                    duration(o.key(key), value);
                }
            });
        });
        write_array(o.key("memory_usage"), &m.memory_usage, |out, u| {
            write_nested_object(out, |o| {
                o.string("type", &u.r#type);
                o.plain("id", u.id);
                o.plain("byte_size", u.byte_size);
            });
        });
        write_nested_object(o.key("batch_closed"), |o| {
            m.batch_closed.iter().for_each(|(reason, count)| o.plain(reason, count));
        });
        if m.padding_rows > 0 {
            o.plain("padding_rows", m.padding_rows);
        }
        if let Some(cache) = &m.response_cache {
            write_nested_object(o.key("response_cache"), |o| {
                o.string("state", &cache.state);
                o.plain("shared_count", cache.shared_count);
                o.plain("switched_off_count", cache.switched_off_count);
                o.plain("passed_count", cache.passed_count);
            });
        }
        if let Some(limiter) = &m.rate_limiter {
            write_limiter_statistics(o.key("rate_limiter"), limiter);
        }
        if !m.warmup_stats.is_empty() {
            write_nested_object(o.key("warmup_stats"), |o| {
                m.warmup_stats.iter().for_each(|(sample, s)| duration(o.key(sample), Some(*s)));
            });
        }
    });
}

fn durations(out: &mut Vec<u8>, all: &[(&str, Option<StatisticDuration>)]) {
    write_nested_object(out, |o| all.iter().for_each(|(key, value)| duration(o.key(key), *value)));
}

pub(super) fn duration(out: &mut Vec<u8>, value: Option<StatisticDuration>) {
    let value = value.unwrap_or_default();
    write_nested_object(out, |o| {
        o.plain("count", value.count);
        o.plain("ns", value.ns);
    });
}

/// The trace level is a list, every other setting a string.
pub fn trace_settings_json(settings: &[TraceSetting]) -> Vec<u8> {
    write_object(|o| {
        for (key, values) in settings {
            match &values[..] {
                [value] if *key != "trace_level" => o.string(key, value),
                values => write_array(o.key(key), values, |out, v| write_string(out, v.as_bytes())),
            }
        }
    })
}

pub fn log_settings_json(settings: &[(&str, Log)]) -> Vec<u8> {
    write_object(|o| {
        for (key, value) in settings {
            match value {
                Log::BoolParam(b) => o.plain(key, b),
                Log::Uint32Param(n) => o.plain(key, n),
                Log::StringParam(text) => o.string(key, text),
            }
        }
    })
}

#[cfg(test)]
#[path = "management_json_tests.rs"]
mod tests;
