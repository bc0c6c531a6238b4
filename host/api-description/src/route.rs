//! What a table says of one route.

/// A route, and the same one with the part of its path that is in brackets.
#[derive(Debug)]
pub struct RouteSpec {
    pub method: &'static str,
    /// `{name}` stands for one segment; a part in brackets may be left out.
    pub path: &'static str,
    /// Name of the operation; with the part in brackets `Version`, `Region` or the like follows.
    pub id: &'static str,
    pub summary: &'static str,
    /// The groups of `--http-restricted-api`.
    pub groups: &'static [&'static str],
    pub query: &'static [ParameterSpec],
    pub headers: &'static [ParameterSpec],
    pub body: Option<BodySpec>,
    pub answer: Answer,
    /// Statuses beside that of the answer, without those that every route may have.
    pub failures: &'static [u16],
}

/// A query parameter or a header.
#[derive(Debug)]
pub struct ParameterSpec {
    pub name: &'static str,
    pub meaning: &'static str,
    pub required: bool,
    pub kind: ParameterKind,
}

/// The values of a parameter.
#[derive(Debug)]
pub enum ParameterKind {
    Text,
    /// A whole number, at least 0.
    Number,
    Choice(&'static [&'static str]),
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub struct BodySpec {
    pub required: bool,
    pub form: BodyForm,
}

/// The form of a body, with the name of its schema if it is JSON.
#[derive(Clone, Copy, Debug)]
pub enum BodyForm {
    Json(&'static str),
    /// JSON, or JSON and binary tensors after it, or the binary tensor of the only input.
    Tensors(&'static str),
    Binary,
}

/// The body of a success.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Json(&'static str),
    /// The status tells; the body is empty, or JSON for clients that accept it.
    Health(&'static str),
    Nothing,
    Tensors(&'static str),
    /// Server-sent events whose data have the schema.
    Events(&'static str),
    /// v1: text or JSON or a binary message, as the query or `Accept` asks.
    Message,
    /// v1: nothing, or tensors and their header.
    Binary,
    Text(&'static str),
}

impl RouteSpec {
    /// The paths of the route, the shorter one first, with the names of their operations.
    pub fn paths(&self) -> Vec<(String, String)> {
        let Some((before, rest)) = self.path.split_once('[') else {
            return vec![(self.path.to_owned(), self.id.to_owned())];
        };
        let (optional, after) = rest.split_once(']').unwrap_or((rest, ""));
        let name = optional.rsplit(['{', '}']).nth(1).unwrap_or_default();
        let (first, rest) = name.split_at(name.len().min(1));
        let longer = format!("{}{}{rest}", self.id, first.to_uppercase());
        vec![
            (format!("{before}{after}"), self.id.to_owned()),
            (format!("{before}{optional}{after}"), longer),
        ]
    }

    /// The routes of a table as `(method, path)`, for comparisons.
    pub fn pairs(table: &[RouteSpec]) -> Vec<(&'static str, String)> {
        let pairs = |route: &RouteSpec| {
            let method = route.method;
            route.paths().into_iter().map(move |(path, _)| (method, path)).collect::<Vec<_>>()
        };
        table.iter().flat_map(pairs).collect()
    }
}

/// A route with GET, without parameters, whose answer is JSON.
pub const fn get(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    groups: &'static [&'static str],
    schema: &'static str,
) -> RouteSpec {
    RouteSpec {
        method: "GET",
        path,
        id,
        summary,
        groups,
        query: &[],
        headers: &[],
        body: None,
        answer: Answer::Json(schema),
        failures: &[],
    }
}

/// A route with POST, whose answer is empty.
pub const fn post(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    groups: &'static [&'static str],
    body: Option<BodySpec>,
) -> RouteSpec {
    RouteSpec {
        method: "POST",
        body,
        answer: Answer::Nothing,
        ..get(path, id, summary, groups, "")
    }
}

impl RouteSpec {
    pub const fn or(mut self, failures: &'static [u16]) -> Self {
        self.failures = failures;
        self
    }

    pub const fn answering(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    pub const fn asking(mut self, query: &'static [ParameterSpec]) -> Self {
        self.query = query;
        self
    }

    pub const fn with_headers(mut self, headers: &'static [ParameterSpec]) -> Self {
        self.headers = headers;
        self
    }
}

impl BodySpec {
    pub const fn required(form: BodyForm) -> Option<Self> {
        Some(Self { required: true, form })
    }

    pub const fn optional(form: BodyForm) -> Option<Self> {
        Some(Self { required: false, form })
    }
}
