//! The environment variables of this process: the one place that reads them.
//!
//! A program that has rights which its caller does not have (set-user-ID, set-group-ID, file capabilities) gets its
//! environment from that caller, who must not decide where it writes or which files it reads. The kernel reports it in the
//! auxiliary vector (`AT_SECURE`, getauxval(3)), and no variable is read then, as in `secure_getenv(3)`.

use std::{env, ffi::OsString};

/// What a variable holds; `None` if it is not set, or is not ours to obey.
pub fn variable(name: &str) -> Option<OsString> {
    if is_secure() { None } else { env::var_os(name) }
}

/// Whether this process has rights that whoever started it does not have. It never changes.
fn is_secure() -> bool {
    // SAFETY: takes a number, and reads what the kernel has given the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn no_other_file_of_the_library_reads_the_environment() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![here.join("src"), here.join("c/src"), here.join("macros/src")];
        let mut looked_at = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path != here.join("src/environment.rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let reads = ["env::var", "env::vars", "temp_dir()", "getenv", "env::{"];
                    let found = reads.into_iter().find(|reads| text.contains(reads));
                    assert_eq!(found, None, "{}", path.display());
                    looked_at += 1;
                }
            }
        }
        assert!(looked_at > 100, "{looked_at}");
    }
}
