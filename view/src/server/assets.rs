//! The page's files, as they are in git.

macro_rules! files {
    ($($path:literal: $ty:expr,)*) => {
        const FILES: &[(&str, &str, &[u8])] =
            &[$((concat!("/", $path), $ty, include_bytes!(concat!("../../web/", $path))),)*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

files! {
    "index.html": HTML,
}

/// The type and the bytes of a file.
pub(super) fn find(path: &str) -> Option<(&'static str, &'static [u8])> {
    let path = if path == "/" { "/index.html" } else { path };
    FILES.iter().find(|(name, ..)| *name == path).map(|(_, ty, bytes)| (*ty, *bytes))
}
