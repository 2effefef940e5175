//! How a plan names a super-trace: `supertrace://HEX/`. HEX encodes its path or URL, and its identity.

use std::path::Path;

use datafusion::{
    common::{DataFusionError, Result},
    execution::object_store::ObjectStoreUrl,
};
use serde::{Deserialize, Serialize};
use sigmund_sql::SuperTrace;

use crate::stores;

/// The scheme of the URLs.
const SCHEME: &str = "supertrace";

/// The information by which other machines find a super-trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Its absolute path, or its URL in a store.
    pub(crate) at: String,
    /// A digest that distinguishes it from any other super-trace at the same path.
    pub(crate) identity: u64,
}

impl Place {
    /// The place of an open super-trace.
    ///
    /// # Errors
    /// When its path is not UTF-8, or is no longer there.
    pub(crate) fn of(trace: &SuperTrace) -> Result<Place, String> {
        let at = match stores::is_url(trace.path()) {
            true => trace.path().to_path_buf(),
            false => absolute(trace.path())?,
        };
        let shown = at.display().to_string();
        let at = at.into_os_string().into_string();
        let at = at.map_err(|_| format!("{shown}: expected a path in UTF-8, to be sent to a cluster"))?;
        Ok(Place { at, identity: trace.identity() })
    }

    /// The URL for plans.
    pub(crate) fn url(&self) -> Result<ObjectStoreUrl> {
        ObjectStoreUrl::parse(self.text()?)
    }

    /// The text of that URL.
    pub(crate) fn text(&self) -> Result<String> {
        let json = serde_json::to_vec(self).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let hex: String = json.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{SCHEME}://{hex}/"))
    }

    /// Reads the place from such a URL.
    ///
    /// # Errors
    /// When it is a URL of another form.
    pub(crate) fn parse(url: &str) -> Result<Place> {
        let hex = url.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://"));
        let hex = hex.map(|rest| rest.trim_end_matches('/'));
        let place = hex.and_then(bytes).and_then(|json| serde_json::from_slice(&json).ok());
        place.ok_or_else(|| {
            DataFusionError::Plan(format!(
                "expected a super-trace, the only thing that is read here, found {url}"
            ))
        })
    }
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_comes_back_from_its_url() {
        for at in ["/tmp/a b/ü%2F.supertrace", "s3://bucket/a/b.supertrace", "/\u{1}\n"] {
            let place = Place { at: at.to_string(), identity: u64::MAX };
            let url = place.url().unwrap();
            assert_eq!(Place::parse(url.as_str()).unwrap(), place);
            assert_eq!(Place::parse(url.as_ref()).unwrap(), place);
        }
        for other in
            ["file:///", "supertrace://open-1/", "supertrace://7b7/", "supertrace://é/", "supertrace://7b/"]
        {
            assert!(Place::parse(other).is_err(), "{other}");
        }
    }
}
