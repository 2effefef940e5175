//! Gives the user threads of a second process numbers that no other process has.

use std::io;

use sigmund_model::{
    Effect, Event, EventStream, EventType, FieldType, Loss, Params, Reported, Thread, Wait, WaitKind,
};

/// A thread number has the number of its process from this bit on.
const PROCESS_SHIFT: u32 = 40;

/// The number of a thread of this process.
pub(super) fn of_process(process: u64, thread: Thread) -> Thread {
    Thread(process << PROCESS_SHIFT | thread.0)
}

/// A stream whose thread numbers include the number of their process.
pub(super) struct Renumbered {
    stream: Box<dyn EventStream + Send>,
    first: u64,
    /// For each kind, which parameters are threads.
    threads: Vec<Vec<bool>>,
    spare: Params,
}

impl Renumbered {
    pub(super) fn new(stream: Box<dyn EventStream + Send>, process: u64, types: &[EventType]) -> Renumbered {
        let threads = |t: &EventType| t.fields.iter().map(|f| f.ty == FieldType::Thread).collect();
        let threads = types.iter().map(threads).collect();
        Renumbered { stream, first: process << PROCESS_SHIFT, threads, spare: Params::default() }
    }

    fn thread(&self, thread: Thread) -> Thread {
        Thread(self.first | thread.0)
    }

    /// A wait for the end of a thread contains the number of the thread.
    fn wait(&self, wait: Wait) -> Wait {
        let is_thread = wait.kind == Some(WaitKind::Join);
        Wait { on: wait.on.map(|on| if is_thread { self.thread(Thread(on)).0 } else { on }), ..wait }
    }

    fn renumber(&mut self, event: &mut Event) {
        if let Reported::Some(thread) = event.thread {
            event.thread = Reported::Some(self.thread(thread));
        }
        event.effect = match event.effect {
            Effect::UserSwitch { next, reason, wait } => {
                let next = next.map(|next| self.thread(next));
                Effect::UserSwitch { next, reason, wait: self.wait(wait) }
            }
            Effect::ThreadNew(thread) => Effect::ThreadNew(self.thread(thread)),
            Effect::ThreadReady(thread) => Effect::ThreadReady(self.thread(thread)),
            other => other,
        };
        let Some(threads) = self.threads.get(event.kind as usize).filter(|t| t.contains(&true)) else {
            return;
        };
        self.spare.clear();
        for (index, param) in event.params.iter().enumerate() {
            let is_thread = threads.get(index) == Some(&true);
            match (param.number, param.text) {
                (Some(n), None) if is_thread && n != 0 => {
                    self.spare.push_number((self.first | n as u64) as i64)
                }
                (Some(n), None) => self.spare.push_number(n),
                (Some(n), Some(name)) => self.spare.push_named(n, name),
                (None, Some(text)) => self.spare.push_text(text),
                (None, None) => self.spare.push_unknown(),
            }
        }
        std::mem::swap(&mut self.spare, &mut event.params);
    }
}

impl EventStream for Renumbered {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.stream.next_into(event)?;
        if more {
            self.renumber(event);
        }
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        self.stream.take_losses()
    }

    fn may_have_losses(&self) -> bool {
        self.stream.may_have_losses()
    }
}
