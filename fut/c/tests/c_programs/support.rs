//! Builds libfut and C programs with it, runs them, and merges their traces.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use sigmund_merge::{MergeOptions, Summary, merge};
use tempfile::TempDir;

use crate::supertrace::Table;

/// How a program is linked with libfut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Shared,
    Static,
    /// Static, and at a fixed address.
    StaticNoPie,
}

/// A folder for one test, and a C compiler.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    /// `None` where there is no C compiler: the test cannot run.
    pub(crate) fn new() -> Option<Bench> {
        if Command::new("cc").arg("--version").output().is_err() {
            crate::skipped::skipped("needs a C compiler, cc");
            return None;
        }
        Some(Bench { folder: tempfile::tempdir().unwrap() })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles a source file, whose path begins in the root of the project, to a program.
    pub(crate) fn program(&self, source: &str, link: Link, options: &[&str]) -> PathBuf {
        let program = self.path(&format!("{}-{link:?}", Path::new(source).file_stem().unwrap().display()));
        let mut command = self.cc(source, options);
        command.arg("-o").arg(&program);
        let libraries = libraries();
        match link {
            Link::Shared => {
                command.arg("-pie").arg("-fPIE").arg("-L").arg(&libraries).arg("-lfut");
                command.arg(format!("-Wl,-rpath,{}", libraries.display()));
            }
            Link::Static => {
                command.args(["-pie", "-fPIE"]).arg(libraries.join("libfut.a")).arg("-lm");
            }
            Link::StaticNoPie => {
                command.args(["-no-pie", "-fno-pie"]).arg(libraries.join("libfut.a")).arg("-lm");
            }
        }
        done(&mut command);
        program
    }

    /// Compiles a source file to a shared library without libfut.
    pub(crate) fn library(&self, source: &str, options: &[&str]) -> PathBuf {
        let library = self.path("libplugin.so");
        done(self.cc(source, options).args(["-shared", "-fPIC", "-o"]).arg(&library));
        library
    }

    /// A folder into which `install.sh` has installed libfut.
    pub(crate) fn installed(&self) -> PathBuf {
        let (libraries, prefix) = (libraries(), self.path("usr"));
        done(Command::new(root().join("fut/c/install.sh")).arg(&prefix).arg(libraries));
        prefix
    }

    fn cc(&self, source: &str, options: &[&str]) -> Command {
        let root = root();
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(root.join("fut/c/include"));
        command.args(options).arg(root.join(source));
        command
    }

    /// Merges a user trace alone.
    pub(crate) fn merged(&self, trace: &Path) -> Merged {
        let out = self.path(&format!("{}.supertrace", trace.file_stem().unwrap().display()));
        let options = MergeOptions { force: true, ..MergeOptions::default() };
        let summary = merge(&[trace.to_path_buf()], &out, &options, |_| ()).unwrap();
        Merged { out, summary }
    }
}

/// A super-trace.
pub(crate) struct Merged {
    out: PathBuf,
    pub(crate) summary: Summary,
}

impl Merged {
    pub(crate) fn lines(&self, table: &str, columns: &[&str]) -> Vec<String> {
        Table::read(&self.out, table).lines(columns)
    }

    /// Name, numbers and texts of the events whose name is one of these.
    pub(crate) fn events(&self, names: &[&str], columns: &[&str]) -> Vec<String> {
        let all = [&["name"], columns].concat();
        let is_asked = |line: &String| names.contains(&line.split(' ').next().unwrap());
        self.lines("events", &all).into_iter().filter(is_asked).collect()
    }
}

/// Runs a program, in an environment without libfut's variables.
pub(crate) fn run(program: &Path, arguments: &[&OsStr], environment: &[(&str, &OsStr)]) -> Output {
    let mut command = Command::new(program);
    let ours = [fut::ENV_ARENA_DIR, fut::ENV_KEYMASK, fut::ENV_KEYMASK_FILE, fut::ENV_PACKETS];
    for name in ours {
        command.env_remove(name);
    }
    let output = command.args(arguments).envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", program.display());
    output
}

/// The line of a source file that begins like this.
pub(crate) fn line_of(source: &str, beginning: &str) -> usize {
    let text = std::fs::read_to_string(root().join(source)).unwrap();
    1 + text.lines().position(|line| line.starts_with(beginning)).unwrap()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// The folder with libfut.so and libfut.a. Cargo does not build them for tests, so they are built here, into the target
/// folder and the profile of this test.
fn libraries() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let profile = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_path_buf();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root()).args(["build", "--quiet", "-p", "fut-c", "--target-dir"]);
        command.arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            command.arg("--release");
        }
        done(&mut command);
        profile
    };
    BUILT.get_or_init(build).clone()
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
