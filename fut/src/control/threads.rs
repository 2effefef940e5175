//! Lists the user threads of this process, and what each of them waits for.

use std::collections::HashMap;

use sigmund_model::Thread;

use super::reply::{Cell, Reply};
use crate::{LiveState, LiveThread, WaitKind, live_threads};

/// Maximum number of rows of an answer. A program may have millions of threads.
const MOST: usize = 100_000;

pub(super) fn threads() -> Reply {
    let live = live_threads();
    let mut reply = Reply::default();
    reply.add_fact("threads", live.len());
    reply.add_fact("not_shown", live.len().saturating_sub(MOST));
    reply.columns = ["thread", "name", "state", "lwp", "waits_for", "on", "held_by", "held_by_name"]
        .map(String::from)
        .into();
    let names: HashMap<Thread, &str> = live.iter().map(|t| (t.thread, t.name.as_str())).collect();
    reply.rows = live.iter().take(MOST).map(|thread| row(thread, &names)).collect();
    reply
}

fn row(live: &LiveThread, names: &HashMap<Thread, &str>) -> Vec<Cell> {
    let name = |name: &str| Some(name.to_string()).filter(|name| !name.is_empty());
    let (state, wait) = match live.state {
        LiveState::New => ("new", None),
        LiveState::Ready => ("ready", None),
        LiveState::Mounted => ("mounted", None),
        LiveState::Blocked { kind, address, holder } => ("blocked", Some((kind, address, holder))),
    };
    let on = wait.and_then(|(kind, address, _)| match kind {
        WaitKind::Join => Some(format!("thread {address}")),
        WaitKind::Io => Some(format!("descriptor {address}")),
        _ => (address != 0).then(|| format!("{address:#x}")),
    });
    let holder = wait.and_then(|(_, _, holder)| holder);
    vec![
        live.thread.0.into(),
        name(&live.name).into(),
        state.into(),
        live.lwp.into(),
        wait.map(|(kind, _, _)| kind.name()).into(),
        on.into(),
        holder.map(|holder| holder.0).into(),
        holder.and_then(|holder| name(names.get(&holder)?)).into(),
    ]
}
