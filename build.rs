//! How the command is linked.
//!
//! **Without symbols**, if it is built for release without debug information. Cargo 1.95 passes `strip=debuginfo` for a package whose
//! level of optimisation a profile overrides, as ours does, whatever `strip` says; the symbols are 21 of 110 MB.
//!
//! **With packed relative relocations** (`DT_RELR`), if the C library of this machine loads them.
//! The tables of DataFusion and its crates have 198 000 addresses that the loader adjusts before `main`. In a list of 24 bytes each
//! these are 4.7 MB of the file, and reading them takes 7 of the 30 ms in which a super-trace is opened and answers `SELECT 1` (medians
//! of 21, AMD EPYC, 2 million user threads).

use std::{env, process::Command};

/// The first glibc that loads packed relocations: <https://sourceware.org/glibc/wiki/Release/2.36>.
const LEAST_GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("DEBUG", "false") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
    let is_of_this_machine = env::var("HOST").ok() == env::var("TARGET").ok();
    if is_of_this_machine && glibc() >= Some(LEAST_GLIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc; `None` if it has another C library.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let version = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
