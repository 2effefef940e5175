//! The subject of a server: a super-trace, two super-traces to compare, or a running program. A super-trace of the
//! running program is made on request (freeze).

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::{Value, json};
use sigmund_sql::OpenOptions;
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::{
    View,
    api::{self, Answer, Query, Refusal},
};

/// A running program. The functions block until it answers.
pub trait Live: Send + Sync + 'static {
    /// Its state: `facts` (an object), and rows of `lwps` and `threads`.
    ///
    /// # Errors
    /// A sentence, if the program cannot be asked, for example because it has ended.
    fn look(&self) -> Result<Value, String>;

    /// Makes a super-trace of its last events.
    ///
    /// # Errors
    /// A sentence, for example if the program does not record like a flight recorder.
    fn freeze(&self) -> Result<Frozen, String>;
}

/// A super-trace of a program's last events. Its folder is removed after the last question about it.
#[derive(Debug)]
pub struct Frozen {
    /// The super-trace.
    pub path: PathBuf,
    /// A folder with nothing but this super-trace.
    pub folder: TempDir,
}

/// The subject of a server.
pub enum Shown {
    /// A super-trace.
    Trace(Arc<View>),
    /// Two super-traces, to compare: A, and B.
    Pair(Arc<View>, Arc<View>),
    /// A running program.
    Program(Arc<dyn Live>),
}

/// The current subject of a server.
pub(crate) struct Stage {
    view: RwLock<Option<Arc<View>>>,
    /// Super-trace B of a comparison.
    other: Option<Arc<View>>,
    program: Option<Arc<dyn Live>>,
    /// Held while the program is frozen.
    freezing: Arc<Mutex<()>>,
    /// The memory limit for queries of the frozen super-trace.
    memory: usize,
}

impl Stage {
    pub(crate) fn new(shown: Shown, memory: usize) -> Stage {
        let (view, other, program) = match shown {
            Shown::Trace(view) => (Some(view), None, None),
            Shown::Pair(a, b) => (Some(a), Some(b), None),
            Shown::Program(program) => (None, None, Some(program)),
        };
        Stage { view: RwLock::new(view), other, program, freezing: Arc::default(), memory }
    }

    /// Answers a question. `live` and `freeze` are about the program. `compare` is about both super-traces. Questions
    /// that begin with `b/` are about the second super-trace, all others about the first.
    pub(crate) async fn answer(&self, question: &str, query: &Query) -> Result<Answer, Refusal> {
        match question {
            "live" => self.look().await,
            "freeze" if query.body.is_object() => self.freeze().await,
            "freeze" => Err(Refusal::wrong("expected a POST with {}")),
            "compare" => match (self.view(), &self.other) {
                (Some(a), Some(b)) => api::compare(&a, b, query).await.map(Answer::Json),
                _ => Err(Refusal::missing("there is no second super-trace to compare with")),
            },
            _ if question.starts_with("b/") => match &self.other {
                Some(view) => api::answer(view, &question[2..], query).await,
                None => Err(Refusal::missing("there is no second super-trace")),
            },
            _ => match self.view() {
                Some(view) if question == "trace" => {
                    Ok(Answer::Json(api::trace(&view, self.other.is_some())))
                }
                Some(view) => api::answer(&view, question, query).await,
                None if question == "trace" => Ok(Answer::Json(json!({ "live": true }))),
                None => Err(Refusal::missing("nothing of the program is frozen yet")),
            },
        }
    }

    fn view(&self) -> Option<Arc<View>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn look(&self) -> Result<Answer, Refusal> {
        let program = self.program()?;
        let looking = tokio::task::spawn_blocking(move || program.look()).await;
        let found = looking.map_err(|_| Refusal::failed("the program could not be looked at"))?;
        found.map(Answer::Json).map_err(Refusal::missing)
    }

    async fn freeze(&self) -> Result<Answer, Refusal> {
        let program = self.program()?;
        // One after the other. A client may disconnect meanwhile, so the lock is held by the work itself.
        let turn = Arc::clone(&self.freezing).lock_owned().await;
        let freezing = tokio::task::spawn_blocking(move || (program.freeze(), turn)).await;
        let (frozen, _turn) = freezing.map_err(|_| Refusal::failed("the program could not be frozen"))?;
        let Frozen { path, folder } = frozen.map_err(Refusal::wrong)?;
        let options = OpenOptions { memory: Some(self.memory), ..OpenOptions::default() };
        let trace = Arc::new(options.open(&path).await?);
        sigmund_query::register_measures(&trace);
        let view = View::open(trace, None, &mut |_| {}).await;
        let view = view.map_err(|error| Refusal::failed(error.to_string()))?.in_folder(folder);
        // Dropped outside of the lock, since that may remove its folder.
        let _before = self.view.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(view));
        Ok(Answer::Json(json!({ "frozen": true })))
    }

    fn program(&self) -> Result<Arc<dyn Live>, Refusal> {
        self.program.clone().ok_or_else(|| Refusal::missing("this is a super-trace: no program runs"))
    }
}
