//! The prompt: reads lines with history and completion, and runs queries, which Ctrl-C cancels.

use std::{path::PathBuf, thread};

use anyhow::{Context, Result};
use rustyline::{CompletionType, Config, Editor, error::ReadlineError, history::FileHistory};
use signal_hook::{consts::SIGINT, iterator::Signals};
use tokio::sync::watch;

use super::{
    commands::{self, Next},
    completion::Words,
    session::Session,
    statements,
    threads::Threads,
};
use crate::{Found, output::reasons, terminal};

/// The number of lines kept in the history.
const HISTORY: usize = 1000;

/// Reads and runs queries until the end of input.
pub(super) async fn run(mut session: Session) -> Result<Found> {
    session.is_prompt = true;
    let config = Config::builder().max_history_size(HISTORY)?.completion_type(CompletionType::List).build();
    let mut editor: Editor<Words, FileHistory> =
        Editor::with_config(config).context("preparing the terminal")?;
    editor.set_helper(Some(Words::of(&session.trace).await));
    let history = history_file();
    if let Some(path) = &history {
        // There is no history file the first time.
        let _ = editor.load_history(path);
    }
    terminal::line(format!("{}: \\? for help, \\d for tables, \\q to end", session.trace.path().display()))?;
    let mut interrupts = interrupts()?;
    loop {
        // Once a line is complete, Ctrl-C cancels the work for that line, even if it has not begun yet.
        interrupts.mark_unchanged();
        // Blocks until a whole statement is read. Nothing else has to run meanwhile.
        let line = match tokio::task::block_in_place(|| editor.readline("sigmund> ")) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("reading the terminal"),
        };
        if line.trim().is_empty() {
            continue;
        }
        // If the history is full or cannot be written, queries still work. It is written now, because the terminal may
        // be closed at any time.
        let _ = editor.add_history_entry(line.as_str());
        if let Some(path) = &history {
            let _ = editor.append_history(path);
        }
        let line = if commands::is_end(&line) { "\\q".to_string() } else { line };
        if line.trim_start().starts_with('\\') {
            match commands::run(&mut session, &line).await {
                Ok(Next::End) => break,
                Ok(Next::Line) => {}
                Err(error) => terminal::notice(&format!("error: {}", reasons(&error))),
            }
            continue;
        }
        for query in statements::each(&line) {
            let threads = Threads::start()?;
            let is_cancelled = tokio::select! {
                answer = threads.run(session.run(query)) => {
                    if let Err(error) = answer {
                        terminal::notice(&format!("error: {}", reasons(&error)));
                    }
                    false
                }
                Ok(()) = interrupts.changed() => true,
            };
            if is_cancelled {
                terminal::notice("cancelled");
                break;
            }
        }
    }
    Ok(Found::Something)
}

/// A value that changes whenever Ctrl-C is typed.
///
/// A separate thread waits for the signal, because the runtime's own timers and events are delayed while all its
/// threads are busy with a query that does not yield.
fn interrupts() -> Result<watch::Receiver<()>> {
    let mut signals = Signals::new([SIGINT]).context("hearing Ctrl-C")?;
    let (sender, receiver) = watch::channel(());
    thread::Builder::new().name("sigmund-ctrl-c".into()).spawn(move || {
        for _ in signals.forever() {
            sender.send_replace(());
        }
    })?;
    Ok(receiver)
}

/// `$XDG_STATE_HOME/sigmund_history`, or in `~/.local/state`; `None` if there is no such folder.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    std::fs::create_dir_all(&state).ok()?;
    Some(state.join("sigmund_history"))
}
