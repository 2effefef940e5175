//! Any path that the file system takes works in every command: parent folders, spaces, line breaks, tabs, bytes that are
//! not UTF-8, and what URLs, globs and shells give a meaning to.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
};

use crate::sigmund::{Sigmund, figure, fixture, program};

/// File names, without a suffix. The folder of the test has a folder `sub`.
const NAMES: [&[u8]; 3] = [
    b"sub/../parent",
    b"file:a b \n\t\r \xff\xfe\xc3 %20 %2F % ? & # * [a-z]{b,c} \\ ' \" ` $HOME ~ \x01\x7f\x1b[2J #1",
    b"...",
];

fn name(bytes: &[u8], suffix: &str) -> OsString {
    OsString::from_vec([bytes, suffix.as_bytes()].concat())
}

#[test]
fn a_super_trace_at_any_path_is_written_asked_and_exported() {
    let sigmund = Sigmund::new();
    fs::create_dir(sigmund.path("sub")).unwrap();
    for bytes in NAMES {
        let o = OsStr::new;
        let (input, trace) = (name(bytes, ".tsv"), name(bytes, ".supertrace"));
        fs::write(sigmund.folder().join(&input), figure(2)).unwrap();
        sigmund.run([o("info"), &input]).found();
        sigmund.run([o("merge"), &input, o("-o"), &trace]).found();
        sigmund.run([o("merge"), &input, o("--force"), o("-o"), &trace]).found();
        sigmund.run([o("info"), &trace]).found();
        sigmund.run([o("check"), &trace]).found();
        let counted =
            sigmund.run([o("sql"), &trace, o("SELECT count(*) AS n FROM events"), o("--format"), o("csv")]);
        assert_eq!(counted.found(), "n\n6\n");
        let listed = sigmund.run([o("-f"), &trace, o("--list-events"), o("--format"), o("ndjson")]).found();
        assert_eq!(listed.lines().count(), 6);
        let active = sigmund.run([o("-f"), &trace, o("--active-time"), o("--thread"), o("15")]).found();
        assert_eq!(active, "696433 cycles\n");
        // A file, a folder, a table.
        for format in ["perfetto", "otf2", "parquet"] {
            let out = name(bytes, &format!(".{format}"));
            for force in [&[][..], &[o("--force")]] {
                let words = [o("export"), &trace, o("--format"), o(format), o("-o"), &out];
                sigmund.run([&words[..], force].concat()).found();
            }
            assert!(sigmund.folder().join(&out).exists());
        }
    }
}

#[test]
fn the_folder_that_the_command_runs_in_may_have_any_path() {
    for bytes in NAMES {
        let sigmund = Sigmund::new();
        let folder = sigmund.folder().join(OsStr::from_bytes(bytes));
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("x.tsv"), figure(2)).unwrap();
        let run = |folder: &Path, words: &[&str]| {
            let mut command = sigmund.command();
            command.current_dir(folder).args(words);
            crate::sigmund::said(command)
        };
        run(&folder, &["merge", "x.tsv", "-o", "sub/../x.supertrace"]).found();
        // Not named: it is the only one in this folder.
        run(&folder, &["--list-events"]).found();
        run(&folder, &["check"]).found();
        run(&folder.join("sub"), &["check", "../x.supertrace"]).found();
        run(&folder.join("x.supertrace"), &["info", "."]).found();
        run(&folder.join("x.supertrace"), &["export", ".", "--format", "chrome", "-o", "-"]).found();
    }
}

#[test]
fn a_run_at_any_path_is_recorded_merged_and_asked() {
    let sigmund = Sigmund::new();
    fs::create_dir(sigmund.path("sub")).unwrap();
    for bytes in NAMES {
        let o = OsStr::new;
        let (run, trace) = (name(bytes, ".run"), name(bytes, ".supertrace"));
        let program = o(program());
        let record = [o("record"), o("--user-only"), o("-o"), &run, o("--"), program];
        let sumtime = ["sumtime", "4", "1", "4"].map(o);
        sigmund.run(record.iter().chain(&sumtime)).found();
        sigmund.run([o("info"), &run]).found();
        let merged = sigmund.folder().join(&trace);
        assert!(merged.exists(), "{trace:?}");
        sigmund.run([o("check"), &trace]).found();
        sigmund.run([o("merge"), &run, o("-o"), &trace, o("--force")]).found();
        sigmund.run([o("sql"), &trace, o("SELECT * FROM threads")]).found();
    }
}

#[test]
fn inputs_of_every_kind_may_have_any_path() {
    let sigmund = Sigmund::new();
    fs::create_dir(sigmund.path("sub")).unwrap();
    for bytes in NAMES {
        let o = OsStr::new;
        let (input, trace) = (name(bytes, ".dat"), name(bytes, ".supertrace"));
        fs::copy(fixture("small-tsc-v7-zstd.dat"), sigmund.folder().join(&input)).unwrap();
        sigmund.run([o("info"), o("--quick"), &input]).found();
        sigmund.run([o("merge"), &input, o("-o"), &trace]).found();
        sigmund.run([o("info"), &trace]).found();
    }
}
