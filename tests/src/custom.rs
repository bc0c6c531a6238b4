//! Libraries of the legacy custom backend interface, compiled from tests/custom for each
//! generation, and their models.

use crate::compile::{compile, folder};
use crate::http1::request;
use crate::repository::parameters;
use crate::server::Server;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Generation of the interface. All share one set of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    A,
    B11,
    B,
    C,
    /// Version 2 as of v1.6: callbacks with a memory type.
    V2a,
    /// Version 2 as of v1.8: with its id as well.
    V2b,
}

pub const GENERATIONS: [Generation; 6] = [
    Generation::A,
    Generation::B11,
    Generation::B,
    Generation::C,
    Generation::V2a,
    Generation::V2b,
];

impl Generation {
    /// Up to v0.11 the size that a library passes for an input is not a hint.
    pub fn has_hints(self) -> bool {
        !matches!(self, Generation::A | Generation::B11)
    }

    /// In names of models.
    pub fn name(self) -> &'static str {
        match self {
            Generation::A => "a",
            Generation::B11 => "b11",
            Generation::B => "b",
            Generation::C => "c",
            Generation::V2a => "v2a",
            Generation::V2b => "v2b",
        }
    }

    /// Configuration parameters that name the generation. Version 2 is detected.
    fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Generation::A => &[("custom_api", "A")],
            Generation::B11 => &[("custom_api", "B11")],
            Generation::C => &[("custom_api", "C")],
            // Without it a trial would find it, which calls the library once more.
            Generation::B => &[("custom_api", "B")],
            Generation::V2a | Generation::V2b => &[],
        }
    }
}

/// Where a library is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Local,
    Isolated,
}

/// All modes.
pub const MODES: [Mode; 2] = [Mode::Local, Mode::Isolated];

impl Mode {
    /// A server with this default for custom libraries. Without a flag they are isolated.
    pub fn server(self) -> Server {
        match self {
            Mode::Local => Server::new().flag("--backend-config=custom,isolation=none"),
            Mode::Isolated => Server::new(),
        }
    }
}

/// Compiles a source of tests/custom. Results are cached.
pub fn library(source: &str, generation: Generation, defines: &[&str]) -> Arc<Vec<u8>> {
    type Key = (String, Generation, Vec<String>);
    static DONE: LazyLock<Mutex<HashMap<Key, Arc<Vec<u8>>>>> = LazyLock::new(Mutex::default);
    let defines: Vec<String> = defines.iter().map(|&define| define.to_owned()).collect();
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (source.to_owned(), generation, defines.clone());
    let made = done.entry(key).or_insert_with(|| {
        let folder = folder();
        let library = folder.path().join("libcustom.so");
        let generation = format!("-DGENERATION_{}", generation.name().to_uppercase());
        // Lazy binding: missing symbols are reported at the call, whatever the linker's default is.
        let mut options = vec!["-Wl,-z,lazy".to_owned(), generation];
        options.extend(defines.iter().map(|define| format!("-D{define}")));
        compile(&format!("tests/custom/{source}"), &library, &options);
        let bytes = std::fs::read(&library);
        Arc::new(bytes.unwrap_or_else(|e| panic!("cannot read {}: {e}", library.display())))
    });
    Arc::clone(made)
}

/// A model of platform `custom`: configuration and library.
#[derive(Clone)]
pub struct Custom {
    name: String,
    tensors: String,
    rest: String,
    batch: u32,
    mode: Option<Mode>,
    parameters: Vec<(String, String)>,
    library: Option<Arc<Vec<u8>>>,
    file: String,
}

impl Custom {
    /// `tensors` are the input and output fields of the configuration. One instance, up to 8 rows,
    /// no library.
    pub fn new(name: &str, tensors: &str) -> Self {
        Custom {
            name: name.to_owned(),
            tensors: tensors.to_owned(),
            rest: String::new(),
            batch: 8,
            mode: None,
            parameters: Vec::new(),
            library: None,
            file: "libcustom.so".to_owned(),
        }
    }

    /// Uses this source, with its generation configured where it cannot be detected.
    pub fn library(mut self, source: &str, generation: Generation) -> Self {
        self.library = Some(library(source, generation, &[]));
        for (key, value) in generation.parameters() {
            self = self.parameter(key, value);
        }
        self
    }

    /// Uses this library.
    pub fn bytes(mut self, library: Arc<Vec<u8>>) -> Self {
        self.library = Some(library);
        self
    }

    /// The library's file name; default `libcustom.so`.
    pub fn file(mut self, file: &str) -> Self {
        self.file = file.to_owned();
        self
    }

    pub fn parameter(mut self, key: &str, value: &str) -> Self {
        self.parameters.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The largest batch; 0 for models without a batch dimension.
    pub fn batch(mut self, rows: u32) -> Self {
        self.batch = rows;
        self
    }

    /// Overrides the server's default mode.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Appends to the configuration.
    pub fn more(mut self, rest: &str) -> Self {
        self.rest.push_str(rest);
        self.rest.push('\n');
        self
    }

    fn config(&self) -> String {
        let mut parameters: Vec<(&str, &str)> =
            self.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        match self.mode {
            Some(Mode::Local) => parameters.push(("isolation", "none")),
            Some(Mode::Isolated) => parameters.push(("isolation", "process")),
            None => {}
        }
        let instances = "instance_group [ { kind: KIND_CPU count: 1 } ]\n";
        let instances = if self.rest.contains("instance_group") { "" } else { instances };
        let file = match self.file.as_str() {
            "libcustom.so" => String::new(),
            file => format!("default_model_filename: \"{file}\"\n"),
        };
        let (name, batch, tensors, rest) = (&self.name, self.batch, &self.tensors, &self.rest);
        format!(
            "name: \"{name}\"\nplatform: \"custom\"\nmax_batch_size: {batch}\n{file}{tensors}\n{instances}{rest}"
        ) + &self::parameters(&parameters)
    }
}

impl Server {
    /// A model served by a library of the legacy interface.
    pub fn custom(self, model: Custom) -> Self {
        let file = format!("{}/1/{}", model.name, model.file);
        let server = self.model(&model.name, model.config());
        match &model.library {
            Some(library) => server.file(&file, library.as_slice()),
            None => server,
        }
    }
}

/// The field `kind` (`input` or `output`) of a configuration with these tensors: name, type, dims.
pub fn tensors(kind: &str, tensors: &[(&str, &str, &str)]) -> String {
    let one = |(name, data_type, dims): &(&str, &str, &str)| {
        format!("{{ name: \"{name}\" data_type: TYPE_{data_type} dims: [ {dims} ] }}")
    };
    let all: Vec<String> = tensors.iter().map(one).collect();
    format!("{kind} [ {} ]\n", all.join(", "))
}

/// A model of tests/custom/faulty.c: OUTPUT0 is INPUT0 + 1, BATCH the number of payloads.
pub fn faulty(name: &str, generation: Generation) -> Custom {
    let both = tensors("input", &[("COMMAND", "STRING", "1"), ("INPUT0", "INT32", "1")])
        + &tensors("output", &[("OUTPUT0", "INT32", "1"), ("BATCH", "INT32", "1")]);
    Custom::new(name, &both).library("faulty.c", generation)
}

/// Configuration that selects the fault at initialize and finalize.
pub fn setting(command: &str) -> String {
    format!(r#"metric_tags {{ key: "fault" value: "{command}" }}"#)
}

/// An HTTP v2 request that selects the fault in execute. INPUT0 is 4.
pub fn command(model: &str, command: &str) -> Vec<u8> {
    let json = format!(
        r#"{{"inputs":[{{"name":"COMMAND","datatype":"BYTES","shape":[1,1],"data":["{command}"]}},
{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[4]}}]}}"#
    );
    request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes())
}
