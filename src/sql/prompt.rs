//! The prompt: lines with history and completion, and queries that Ctrl-C cancels.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use rustyline::{CompletionType, Config, Editor, error::ReadlineError, history::FileHistory};

use super::{
    commands::{self, Next},
    completion::Words,
    session::Session,
    statements,
};
use crate::{Found, output::reasons, terminal};

/// How often a running query looks whether Ctrl-C has been typed.
const LOOKED_AT: Duration = Duration::from_millis(20);
/// Lines that are kept between prompts.
const HISTORY: usize = 1000;

/// Asks for queries until there are no more.
pub(super) async fn run(mut session: Session) -> Result<Found> {
    session.is_prompt = true;
    let config = Config::builder().max_history_size(HISTORY)?.completion_type(CompletionType::List).build();
    let mut editor: Editor<Words, FileHistory> =
        Editor::with_config(config).context("preparing the terminal")?;
    editor.set_helper(Some(Words::of(&session.trace)));
    let history = history_file();
    if let Some(path) = &history {
        // There is none yet, the first time.
        let _ = editor.load_history(path);
    }
    terminal::line(format!("{}: \\? for help, \\d for tables, \\q to end", session.trace.path().display()))?;
    let is_interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&is_interrupted))?;
    loop {
        // The lines of a statement come together; nothing else happens meanwhile.
        let line = match tokio::task::block_in_place(|| editor.readline("sigmund> ")) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("reading the terminal"),
        };
        if line.trim().is_empty() {
            continue;
        }
        // A history that is full or cannot be written does not keep anybody from asking.
        let _ = editor.add_history_entry(line.as_str());
        if line.trim_start().starts_with('\\') {
            match commands::run(&mut session, &line).await {
                Ok(Next::End) => break,
                Ok(Next::Line) => {}
                Err(error) => terminal::notice(&format!("error: {}", reasons(&error))),
            }
            continue;
        }
        for query in statements::each(&line) {
            // The terminal sends this signal when Ctrl-C is typed while a query runs, and a second one has no other effect.
            is_interrupted.store(false, Ordering::Relaxed);
            let is_cancelled = tokio::select! {
                answer = session.run(query) => {
                    if let Err(error) = answer {
                        terminal::notice(&format!("error: {}", reasons(&error)));
                    }
                    false
                }
                () = interrupted(&is_interrupted) => true,
            };
            if is_cancelled {
                terminal::notice("cancelled");
                break;
            }
        }
    }
    if let Some(path) = history {
        let _ = editor.save_history(&path);
    }
    Ok(Found::Something)
}

/// Ends when Ctrl-C has been typed.
async fn interrupted(is_interrupted: &AtomicBool) {
    while !is_interrupted.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOKED_AT).await;
    }
}

/// `$XDG_STATE_HOME/sigmund_history`, or in `~/.local/state`; `None` if there is no such folder.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    std::fs::create_dir_all(&state).ok()?;
    Some(state.join("sigmund_history"))
}
