//! The parameters of a question.

use std::{collections::BTreeMap, str::FromStr};

use serde_json::Value;
use url::form_urlencoded;

use super::Refusal;
use crate::{View, key::Key};

/// Parameters by name, and the body of a POST.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    parameters: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// A half-open window, in ticks of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Query {
    /// Makes it from a URL's query and a body.
    pub(crate) fn new(query: &str, body: Value) -> Query {
        Query { parameters: form_urlencoded::parse(query.as_bytes()).into_owned().collect(), body }
    }

    /// A parameter. `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A parameter that is not a text.
    pub(super) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let wrong = |_| Refusal::wrong(format!("{name}: expected another value, found `{text}`"));
        text.parse().map(Some).map_err(wrong)
    }

    /// A number of objects, at most `most`.
    pub(super) fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, Refusal> {
        Ok(self.parsed(name)?.unwrap_or(default).min(most))
    }

    /// The row that the question names.
    pub(super) fn key(&self) -> Result<Key, Refusal> {
        let text = self.get("key").ok_or_else(|| Refusal::wrong("expected key=…"))?;
        text.parse().map_err(Refusal::wrong)
    }

    /// The rows that the question names, separated by commas.
    pub(super) fn keys(&self) -> Result<Option<Vec<Key>>, Refusal> {
        let Some(text) = self.get("keys") else { return Ok(None) };
        let keys: Result<Vec<Key>, String> = text.split(',').map(str::parse).collect();
        keys.map(Some).map_err(Refusal::wrong)
    }

    /// The window; the whole trace if none is given.
    pub(super) fn window(&self, view: &View) -> Result<Window, Refusal> {
        let tick = |name| -> Result<Option<f64>, Refusal> {
            let tick = self.parsed::<f64>(name)?.or_else(|| self.body.get(name).and_then(Value::as_f64));
            match tick {
                Some(tick) if !tick.is_finite() => {
                    Err(Refusal::wrong(format!("{name}: expected a number of ticks, found {tick}")))
                }
                tick => Ok(tick),
            }
        };
        let window = Window {
            from: tick("from")?.map_or(view.extent.0, |from| view.tick(from.floor())),
            to: tick("to")?.map_or(view.extent.1.saturating_add(1), |to| view.tick(to.ceil())),
        };
        if window.to <= window.from {
            return Err(Refusal::wrong("expected a window that ends after it begins"));
        }
        Ok(window)
    }
}
