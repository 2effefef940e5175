//! Other tools that read the same formats.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A tool that reads a trace from beginning to end.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Prefix of the format's name.
    format: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

/// The peers. In their arguments, `TRACE` is replaced by the path of the trace.
const PEERS: &[Peer] = &[
    Peer { name: "libkshark loads it", format: "trace.dat", program: "kshark", arguments: &["TRACE"] },
    Peer {
        name: "trace-cmd report",
        format: "trace.dat",
        program: "trace-cmd",
        arguments: &["report", "-i", "TRACE"],
    },
    Peer {
        name: "perf script",
        format: "perf.data",
        program: "perf",
        arguments: &["script", "-f", "-i", "TRACE"],
    },
    Peer {
        name: "babeltrace2 -o dummy",
        format: "CTF",
        program: "babeltrace2",
        arguments: &["-o", "dummy", "TRACE"],
    },
    Peer { name: "fxt_print", format: "FxT", program: "fxt_print", arguments: &["-f", "TRACE"] },
];

/// The peers that read this format.
pub(crate) fn of(format: &str) -> impl Iterator<Item = &'static Peer> {
    let format = format.to_lowercase();
    PEERS.iter().filter(move |peer| format.starts_with(&peer.format.to_lowercase()))
}

impl Peer {
    /// The command that reads this trace, or the reason why there is none.
    pub(crate) fn command(&self, trace: &Path, folder: &Path) -> Result<Command, String> {
        let program = if self.program == "kshark" { kshark(folder)? } else { installed(self.program)? };
        let mut command = Command::new(program);
        for argument in self.arguments {
            if *argument == "TRACE" {
                command.arg(trace)
            } else {
                command.arg(argument)
            };
        }
        Ok(command)
    }
}

fn installed(program: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.ok_or_else(|| format!("{program} is not installed"))
}

/// libkshark is a library; a program that uses it is compiled here once.
fn kshark(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("kshark");
    if program.exists() {
        return Ok(program);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ingest/kshark.c");
    let mut compiler = Command::new(installed("cc")?);
    compiler.args(["-O2", "-o"]).arg(&program).arg(source).arg("-l:libkshark.so.2");
    match compiler.output() {
        Ok(output) if output.status.success() => Ok(program),
        Ok(_) => Err("libkshark is not installed (Debian: libkshark2)".to_string()),
        Err(error) => Err(error.to_string()),
    }
}
