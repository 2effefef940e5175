//! Symbols that were split off a binary: `objcopy --only-keep-debug`, or a distribution's debug packages.
//!
//! Where they are follows gdb's convention ("Debugging Information in Separate Files" of its manual). They are found by
//! the build id under `/usr/lib/debug/.build-id`; or by the name in the section `.gnu_debuglink`, beside the binary, in
//! `.debug` there, or in the same place under `/usr/lib/debug`. The file must have the build id of the binary.

use std::path::{Path, PathBuf};

const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Where the debug file of the binary at `path` may be, most likely places first. `link` is the contents of its
/// section.
pub(super) fn candidates(path: &Path, build_id: &str, link: Option<&[u8]>) -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    if let Some((folder, file)) = build_id.split_at_checked(2).filter(|(_, file)| !file.is_empty()) {
        candidates.push(Path::new(DEBUG_ROOT).join(".build-id").join(folder).join(format!("{file}.debug")));
    }
    // This must be a name, not a path, because it comes from the binary.
    let name = link.and_then(|link| std::str::from_utf8(link).ok());
    let name = name.filter(|name| !name.is_empty() && *name != ".." && !name.contains(['/', '\0']));
    if let (Some(folder), Some(name)) = (path.parent(), name) {
        let below_root = folder.strip_prefix("/").unwrap_or(folder);
        candidates.push(folder.join(name));
        candidates.push(folder.join(".debug").join(name));
        candidates.push(Path::new(DEBUG_ROOT).join(below_root).join(name));
    }
    candidates.retain(|candidate| candidate != path);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_where_gdb_looks() {
        let found = |build_id, link: Option<&str>| -> Vec<String> {
            let found = candidates(Path::new("/usr/bin/sort"), build_id, link.map(str::as_bytes));
            found.iter().map(|path| path.display().to_string()).collect()
        };
        let expected = [
            "/usr/lib/debug/.build-id/c0/ffee.debug",
            "/usr/bin/sort.debug",
            "/usr/bin/.debug/sort.debug",
            "/usr/lib/debug/usr/bin/sort.debug",
        ];
        assert_eq!(found("c0ffee", Some("sort.debug")), expected);
        assert_eq!(found("", Some("../../etc/shadow")), [""; 0]);
        assert_eq!(found("c0", None), [""; 0]);
    }
}
