//! The function library of a graph: functions must not call themselves, directly or through others.
//!
//! TensorFlow expands calls before it runs a graph and recurses for each, so that a cycle, even one
//! with an exit, or a chain of thousands of calls ends the process by stack overflow.

use crate::proto::{MalformedProto, read_entry, read_fields, read_text};
use std::collections::HashMap;
use std::fmt;
use trtserver_proto_wire::WireValue;

/// Nested calls. Models nest a dozen; some hundreds overflow a small stack.
const MAX_DEPTH: usize = 100;
/// Attributes within attributes: protobuf's own limit.
const MAX_NESTING: usize = 100;

/// Why TensorFlow must not get a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphRefusal {
    MalformedProto(MalformedProto),
    /// Names of the functions, the first one repeated at the end.
    Cycle(Vec<String>),
    /// The function at which the limit is reached.
    TooDeep(String),
}

impl fmt::Display for GraphRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphRefusal::MalformedProto(why) => write!(f, "not a GraphDef: {why}"),
            GraphRefusal::Cycle(names) => {
                // A long cycle is shown by its first names.
                let shown = &names[..names.len().min(8)];
                let rest = if shown.len() < names.len() { " -> ..." } else { "" };
                write!(f, "cyclic function library: {}{rest}", shown.join(" -> "))
            }
            GraphRefusal::TooDeep(name) => {
                write!(f, "function '{name}' is called through more than {MAX_DEPTH} others")
            }
        }
    }
}

impl From<MalformedProto> for GraphRefusal {
    fn from(why: MalformedProto) -> Self {
        GraphRefusal::MalformedProto(why)
    }
}

/// Checks the functions that an encoded `GraphDef` calls.
///
/// # Errors
/// A cycle, or calls nested too deeply.
pub fn check_functions(graph: &[u8]) -> Result<(), GraphRefusal> {
    let library = FunctionLibrary::read(graph)?;
    let mut called = Vec::new();
    for field in read_fields(graph) {
        if let (1, WireValue::Bytes(node)) = field.map_err(GraphRefusal::from)? {
            library.calls(node, &mut called)?;
        }
    }
    library.walk(called)
}

/// The functions of a graph, by number.
#[derive(Default)]
pub struct FunctionLibrary<'a> {
    names: Vec<&'a str>,
    numbers: HashMap<&'a str, usize>,
    /// Encoded `FunctionDef`s.
    bodies: Vec<&'a [u8]>,
}

impl<'a> FunctionLibrary<'a> {
    pub fn read(graph: &'a [u8]) -> Result<Self, MalformedProto> {
        let mut library = Self::default();
        for field in read_fields(graph) {
            let (2, WireValue::Bytes(part)) = field? else { continue };
            for field in read_fields(part) {
                if let (1, WireValue::Bytes(function)) = field? {
                    library.add(function)?;
                }
            }
        }
        Ok(library)
    }

    fn add(&mut self, function: &'a [u8]) -> Result<(), MalformedProto> {
        let mut name = None;
        for field in read_fields(function) {
            let (1, WireValue::Bytes(signature)) = field? else { continue };
            for field in read_fields(signature) {
                if let (1, WireValue::Bytes(bytes)) = field? {
                    name = Some(read_text(bytes, "name of a function")?);
                }
            }
        }
        let name = name.ok_or(MalformedProto::Unnamed("a function"))?;
        self.numbers.insert(name, self.names.len());
        self.names.push(name);
        self.bodies.push(function);
        Ok(())
    }

    /// Adds the functions that a `NodeDef` calls: its operation, and its attributes.
    pub fn calls(&self, node: &[u8], called: &mut Vec<usize>) -> Result<(), MalformedProto> {
        for field in read_fields(node) {
            match field? {
                (2, WireValue::Bytes(operation)) => {
                    called.extend(self.numbers.get(read_text(operation, "an operation's type")?));
                }
                (5, WireValue::Bytes(attribute)) => {
                    let (_, value) = read_entry(attribute, "name of an attribute")?;
                    self.named_by(value, called, 0)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds the functions that an `AttrValue` names.
    fn named_by(
        &self,
        value: &[u8],
        called: &mut Vec<usize>,
        nesting: usize,
    ) -> Result<(), MalformedProto> {
        for field in read_fields(value) {
            match field? {
                (10, WireValue::Bytes(function)) => self.named(function, called, nesting)?,
                (1, WireValue::Bytes(list)) => {
                    for field in read_fields(list) {
                        if let (9, WireValue::Bytes(function)) = field? {
                            self.named(function, called, nesting)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds the function of a `NameAttrList`, and the functions that its attributes name.
    fn named(
        &self,
        function: &[u8],
        called: &mut Vec<usize>,
        nesting: usize,
    ) -> Result<(), MalformedProto> {
        if nesting >= MAX_NESTING {
            return Err(MalformedProto::Nesting);
        }
        for field in read_fields(function) {
            match field? {
                (1, WireValue::Bytes(name)) => {
                    called.extend(self.numbers.get(read_text(name, "name of a function")?));
                }
                (2, WireValue::Bytes(attribute)) => {
                    let (_, value) = read_entry(attribute, "name of an attribute")?;
                    self.named_by(value, called, nesting + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub fn contains(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }

    /// The encoded `NodeDef`s of a function.
    pub fn nodes(&self, function: usize) -> Result<Vec<&'a [u8]>, MalformedProto> {
        let mut nodes = Vec::new();
        for field in read_fields(self.bodies[function]) {
            if let (3, WireValue::Bytes(node)) = field? {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    fn called_by(&self, function: usize) -> Result<Vec<usize>, MalformedProto> {
        let mut called = Vec::new();
        for node in self.nodes(function)? {
            self.calls(node, &mut called)?;
        }
        called.sort_unstable();
        called.dedup();
        Ok(called)
    }

    /// Depth-first from the functions in `roots`, with a stack of its own.
    fn walk(&self, mut roots: Vec<usize>) -> Result<(), GraphRefusal> {
        roots.sort_unstable();
        roots.dedup();
        // Calls below each function that is finished.
        let mut depths: Vec<Option<usize>> = vec![None; self.names.len()];
        for root in roots {
            if depths[root].is_some() {
                continue;
            }
            let mut path = vec![Visit::new(root, self.called_by(root)?)];
            while let Some(visit) = path.last_mut() {
                let Some(callee) = visit.rest.pop() else {
                    let (function, depth) = (visit.function, visit.depth);
                    depths[function] = Some(depth);
                    path.pop();
                    if let Some(caller) = path.last_mut() {
                        caller.depth = caller.depth.max(depth + 1);
                    }
                    continue;
                };
                if let Some(depth) = depths[callee] {
                    visit.depth = visit.depth.max(depth + 1);
                } else if let Some(start) = path.iter().position(|visit| visit.function == callee) {
                    let cycle = path[start..].iter().map(|visit| visit.function).chain([callee]);
                    return Err(GraphRefusal::Cycle(
                        cycle.map(|function| self.names[function].to_owned()).collect(),
                    ));
                } else {
                    path.push(Visit::new(callee, self.called_by(callee)?));
                }
                let below = path.last().map_or(0, |visit| visit.depth);
                if path.len() + below > MAX_DEPTH {
                    return Err(GraphRefusal::TooDeep(self.names[callee].to_owned()));
                }
            }
        }
        Ok(())
    }
}

struct Visit {
    function: usize,
    /// Functions called and not yet visited.
    rest: Vec<usize>,
    /// Calls nested below this function.
    depth: usize,
}

impl Visit {
    fn new(function: usize, rest: Vec<usize>) -> Self {
        Self { function, rest, depth: 0 }
    }
}

#[cfg(test)]
#[path = "function_library_tests.rs"]
mod tests;
