//! The answer to an inference: JSON, then the outputs that were asked for as bytes.

use super::json::{data, write};
use super::parse::Asked;
use super::receive::{SMALL, elsewhere};
use crate::error::{Error, Result};
use crate::net::http::body::{Chunks, ResponseBody};
use crate::net::v2::classes;
use crate::repository::Served;
use crate::request::{InferResponse, OutputTensor, Parameter};
use bytes::{Buf, Bytes};
use flate2::Compression;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::io::Read;

/// Length of the JSON part, in both directions.
pub const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// Builds the response to a request that asked for `asked` and accepts what `headers` say.
pub async fn respond(
    served: &Served,
    asked: &Asked,
    response: InferResponse,
    headers: &HeaderMap,
) -> Result<Response<ResponseBody>> {
    let mut sections = Vec::new();
    let json = self::json(served, asked, response, &mut sections)?;
    let header = json.len();
    let binary = sections.iter().any(|s| !s.is_empty());
    let mut chunks = Chunks::from(json);
    sections.into_iter().for_each(|s| chunks.push(s));

    let mut response = Response::new(ResponseBody::empty());
    let content_type = if binary { "application/octet-stream" } else { "application/json" };
    let out = response.headers_mut();
    out.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if binary {
        out.insert(HEADER_LENGTH, HeaderValue::from(header));
    }
    *response.body_mut() = match Encoding::pick(headers) {
        Encoding::Identity => ResponseBody::from_chunks(chunks),
        encoding => {
            out.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
            ResponseBody::from(compress(chunks, encoding).await?)
        }
    };
    Ok(response)
}

fn json(
    served: &Served,
    asked: &Asked,
    response: InferResponse,
    sections: &mut Vec<Bytes>,
) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(256);
    let mut object = write::Object::new(&mut out);
    if !asked.id.is_empty() {
        object.string("id", &asked.id);
    }
    object.string("model_name", &served.name);
    object.string("model_version", &served.version_text);
    if !response.parameters.is_empty() {
        let mut inner = write::Object::new(object.key("parameters"));
        for (key, value) in &response.parameters {
            match value {
                Parameter::String(text) => inner.string(key, text),
                Parameter::Int(n) => inner.plain(key, n),
                Parameter::Bool(b) => inner.plain(key, b),
                Parameter::Double(d) => write::double(inner.key(key), *d),
            }
        }
        inner.end();
    }
    let mut failed = None;
    write::array(object.key("outputs"), response.outputs, |out, output| {
        if failed.is_none() {
            failed = self::output(served, asked, out, output, sections).err();
        }
    });
    object.end();
    failed.map_or(Ok(out), Err)
}

fn output(
    served: &Served,
    asked: &Asked,
    out: &mut Vec<u8>,
    mut output: OutputTensor,
    sections: &mut Vec<Bytes>,
) -> Result<()> {
    let listed = asked.outputs.iter().find(|o| *o.name == *output.name);
    let binary = listed.map_or(asked.binary, |o| o.binary);
    if let Some(k) = listed.map(|o| o.classes).filter(|k| *k > 0) {
        output = classes::of(&served.signature, &output, k)?;
    }
    let mut object = write::Object::new(out);
    object.string("name", &output.name);
    object.string("datatype", output.dtype.v2_name());
    write::shape(object.key("shape"), &output.shape);
    if binary {
        let mut parameters = write::Object::new(object.key("parameters"));
        parameters.plain("binary_data_size", output.data.len());
        parameters.end();
        sections.push(output.data);
    } else {
        data::encode(object.key("data"), output.dtype, &output.data)?;
    }
    object.end();
    Ok(())
}

/// How a response is compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Encoding {
    Identity,
    Gzip,
    Deflate,
}

impl Encoding {
    const ALL: [Encoding; 3] = [Encoding::Identity, Encoding::Gzip, Encoding::Deflate];

    fn name(self) -> &'static str {
        match self {
            Encoding::Identity => "identity",
            Encoding::Gzip => "gzip",
            Encoding::Deflate => "deflate",
        }
    }

    /// The one of the highest weight, the first of equals.
    fn pick(headers: &HeaderMap) -> Self {
        let mut best = (0.0, Encoding::Identity);
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
        for item in values.flat_map(|v| v.split(',')) {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let Some(encoding) = Self::ALL.iter().find(|e| e.name().eq_ignore_ascii_case(name))
            else {
                continue;
            };
            let weight = parts.find_map(|p| p.strip_prefix("q="));
            let weight = weight.map_or(1.0, |q| q.trim().parse::<f64>().unwrap_or(0.0));
            if weight > best.0 {
                best = (weight, *encoding);
            }
        }
        best.1
    }
}

async fn compress(chunks: Chunks, encoding: Encoding) -> Result<Vec<u8>> {
    let (mut chunks, len) = chunks.finish();
    let small = len <= SMALL as u64;
    let work = move || {
        let mut out = Vec::new();
        let mut all: Box<dyn Read + Send> = Box::new(std::io::empty());
        while let Some(last) = chunks.pop_back() {
            all = Box::new(last.reader().chain(all));
        }
        let level = Compression::default();
        match encoding {
            Encoding::Gzip => flate2::read::GzEncoder::new(all, level).read_to_end(&mut out),
            _ => flate2::read::ZlibEncoder::new(all, level).read_to_end(&mut out),
        }
        .map_err(|e| Error::internal(format!("failed to compress the response: {e}")))?;
        Ok(out)
    };
    elsewhere(work, small).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        for (text, want) in [
            ("", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("deflate", Encoding::Deflate),
            ("*", Encoding::Identity),
            ("br, gzip;q=0.5, deflate;q=0.8", Encoding::Deflate),
            ("gzip, deflate", Encoding::Gzip),
            ("identity, gzip", Encoding::Identity),
            ("identity;q=0.5,gzip;q=0.5", Encoding::Identity),
            ("gzip;q=0", Encoding::Identity),
            ("GZIP; q=1.0", Encoding::Gzip),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, text.parse().unwrap())]);
            assert_eq!(Encoding::pick(&headers), want, "{text}");
        }
    }
}
