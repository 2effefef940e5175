//! A running program for the timeline's server. It is inspected through its control socket. To freeze it, a snapshot of
//! its flight recorder is written and merged.

use std::{
    fs::{self, File},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fut::control::{Cell, Process, Reply, Request};
use serde_json::{Map, Value, json};
use sigmund_merge::MergeOptions;
use sigmund_view::{Frozen, Live};
use tempfile::TempDir;

/// The time limit for a program's answer.
const LOOK: Duration = Duration::from_secs(5);

/// The time limit for a program to write its last events.
const SNAPSHOT: Duration = Duration::from_secs(60);

/// A program, and a folder for the folders of its frozen traces.
pub(super) struct Program {
    pid: u32,
    folder: TempDir,
    frozen: AtomicUsize,
    stop: Arc<AtomicBool>,
}

impl Program {
    /// Finds a program that records, by its pid.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn find(pid: u32, stop: Arc<AtomicBool>) -> anyhow::Result<Program> {
        Process::find(pid)?.ask(&Request::Status)?;
        let folder = tempfile::Builder::new().prefix("sigmund-view-").tempdir()?;
        Ok(Program { pid, folder, frozen: AtomicUsize::new(0), stop })
    }

    fn ask(&self, request: &Request) -> Result<Reply, String> {
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let process = Process::find(self.pid).map_err(|error| error.to_string())?;
        process.ask_within(request, LOOK, &is_stopped).map_err(|error| error.to_string())
    }
}

impl Live for Program {
    fn look(&self) -> Result<Value, String> {
        let (status, threads) = (self.ask(&Request::Status)?, self.ask(&Request::Threads)?);
        Ok(json!({
            "pid": self.pid,
            "facts": status.facts.iter().map(|(name, cell)| (name.clone(), value(cell))).collect::<Map<_, _>>(),
            "lwps": rows(&status),
            "threads": rows(&threads),
            "not_shown": threads.number("not_shown").unwrap_or(0),
        }))
    }

    fn freeze(&self) -> Result<Frozen, String> {
        let folder = tempfile::Builder::new().prefix("frozen-").tempdir_in(self.folder.path());
        let folder = folder.map_err(|error| format!("{}: {error}", self.folder.path().display()))?;
        let recording = folder.path().join("recording.fut");
        let file =
            File::create_new(&recording).map_err(|error| format!("{}: {error}", recording.display()))?;
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let process = Process::find(self.pid).map_err(|error| error.to_string())?;
        process.snapshot_within(&file, SNAPSHOT, &is_stopped).map_err(|error| error.to_string())?;
        let number = self.frozen.fetch_add(1, Ordering::Relaxed);
        let path = folder.path().join(format!("{}-{number}.supertrace", self.pid));
        let options = MergeOptions { stop: Some(Arc::clone(&self.stop)), ..MergeOptions::default() };
        sigmund_merge::merge(std::slice::from_ref(&recording), &path, &options, |_| {})
            .map_err(|error| error.to_string())?;
        // If it cannot be removed now, it is removed with the folder.
        let _ = fs::remove_file(&recording);
        Ok(Frozen { path, folder })
    }
}

/// The rows of an answer, as objects.
fn rows(reply: &Reply) -> Vec<Value> {
    let row = |row: &Vec<Cell>| {
        Value::Object(reply.columns.iter().cloned().zip(row.iter().map(value)).collect::<Map<_, _>>())
    };
    reply.rows.iter().map(row).collect()
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Nothing => Value::Null,
        // Numbers in JavaScript are exact only up to 2^53.
        Cell::Number(number) if *number > 1 << 53 => json!(number.to_string()),
        Cell::Number(number) => json!(number),
        Cell::Fraction(fraction) => json!(fraction),
        Cell::Text(text) => json!(text),
    }
}
