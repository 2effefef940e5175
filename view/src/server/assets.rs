//! The page's files, as they are in git.

macro_rules! files {
    ($($path:literal: $ty:expr,)*) => {
        const FILES: &[(&str, &str, &[u8])] =
            &[$((concat!("/", $path), $ty, include_bytes!(concat!("../../web/", $path))),)*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";

files! {
    "api.js": SCRIPT,
    "aside.js": SCRIPT,
    "braid.js": SCRIPT,
    "comparison.js": SCRIPT,
    "document.js": SCRIPT,
    "format.js": SCRIPT,
    "head.js": SCRIPT,
    "heights.js": SCRIPT,
    "icon.svg": IMAGE,
    "index.html": HTML,
    "kept.js": SCRIPT,
    "keys.js": SCRIPT,
    "live.html": HTML,
    "live.js": SCRIPT,
    "live_threads.js": SCRIPT,
    "losses.js": SCRIPT,
    "main.js": SCRIPT,
    "minimap.js": SCRIPT,
    "navigation.js": SCRIPT,
    "palette.js": SCRIPT,
    "panes.js": SCRIPT,
    "picture.js": SCRIPT,
    "pointer.js": SCRIPT,
    "population.js": SCRIPT,
    "rows.js": SCRIPT,
    "shell.js": SCRIPT,
    "style.css": STYLE,
    "tiles.js": SCRIPT,
    "timeline.js": SCRIPT,
    "panels/answer.js": SCRIPT,
    "panels/braids.js": SCRIPT,
    "panels/compare.js": SCRIPT,
    "panels/completion.js": SCRIPT,
    "panels/details.js": SCRIPT,
    "panels/distribution.js": SCRIPT,
    "panels/event_pages.js": SCRIPT,
    "panels/latency.js": SCRIPT,
    "panels/listing.js": SCRIPT,
    "panels/marks.js": SCRIPT,
    "panels/measures.js": SCRIPT,
    "panels/selection.js": SCRIPT,
    "panels/sql.js": SCRIPT,
    "panels/table.js": SCRIPT,
    "panels/tree.js": SCRIPT,
}

/// The type and the bytes of a file.
pub(super) fn find(path: &str) -> Option<(&'static str, &'static [u8])> {
    let path = if path == "/" { "/index.html" } else { path };
    FILES.iter().find(|(name, ..)| *name == path).map(|(_, ty, bytes)| (*ty, *bytes))
}
