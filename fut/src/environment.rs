//! Environment variables of this process: the only code that reads them.
//!
//! A program with more privileges than its caller (set-user-ID, set-group-ID, file capabilities) gets its environment
//! from that caller. The caller must not decide where such a program writes or which files it reads. The kernel reports
//! this case in the auxiliary vector (`AT_SECURE`, getauxval(3)). Then no variable is read, as with `secure_getenv(3)`.

use std::{env, ffi::OsString};

/// The value of a variable; `None` if it is not set, or if the environment is not trusted.
pub fn variable(name: &str) -> Option<OsString> {
    if is_secure() { None } else { env::var_os(name) }
}

/// Whether this process has more privileges than its caller. This never changes.
fn is_secure() -> bool {
    // SAFETY: takes a number, and reads the auxiliary vector.
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
