//! Late metadata: declarations of programs in other languages, made before or after the start of the session, and
//! libraries that were loaded later. Each of them becomes another metadata packet.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, TryLockError},
    thread,
    time::Duration,
};

use sigmund_model::{Pid, Ticks, names};

use super::{current, modules};
use crate::{
    clock,
    shm::Arena,
    trace::{Declaration, MAX_C_CODE, PacketHead, PacketKind, encode_declarations, encode_modules},
};

/// The declarations passed to [`declare`]. Pushing metadata requires this lock.
static DECLARED_LATE: Mutex<Vec<Declaration>> = Mutex::new(Vec::new());

/// Names of this crate's own events. A reader recognises them by name, so an event of another program with such a name
/// would become a user context switch, a span or the like.
const RESERVED: [&str; 13] = [
    names::USER_CONTEXT_SWITCH,
    "USER_THREAD_NEW",
    "USER_THREAD_READY",
    "USER_THREAD_MIGRATE",
    names::USER_TEAM_FORK,
    names::USER_TEAM_MEMBER,
    names::USER_TEAM_JOIN,
    names::LOCK_ACQUIRE,
    names::LOCK_RELEASE,
    "LWP_ATTACH",
    "LWP_DETACH",
    "SPAN_BEGIN",
    "SPAN_END",
];

/// Why an event cannot be declared.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeclareError {
    /// The code is out of bounds.
    Code(u32),
    /// The name is that of an event of this crate.
    ReservedName(String),
    /// The code is already declared, with another name, key or other fields.
    Contradicts {
        /// The earlier declaration.
        first: Box<Declaration>,
        /// The refused declaration.
        second: Box<Declaration>,
    },
    /// The trace has no room for more declarations.
    NoRoom,
    /// Another thread held the lock for a second.
    Busy,
}

impl fmt::Display for DeclareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeclareError::Code(code) => {
                write!(f, "expected a code from 1 to {MAX_C_CODE:#x}, found {code:#x}")
            }
            DeclareError::ReservedName(name) => {
                write!(f, "expected a name that is not reserved for this library, found {name}")
            }
            DeclareError::Contradicts { first, second } => {
                write!(f, "{}:{}: expected {}", second.file, second.line, shape(first))?;
                write!(f, ", as declared at {}:{}, found {}", first.file, first.line, shape(second))
            }
            DeclareError::NoRoom => f.write_str("the trace has no room for more declarations"),
            DeclareError::Busy => {
                f.write_str("another thread has held the lock of the declarations for a second")
            }
        }
    }
}

impl std::error::Error for DeclareError {}

/// Declares an event whose code is chosen by the program, from 1 to [`MAX_C_CODE`]. This is for bindings to other
/// languages; in Rust, use [`events!`](crate::events). Before the session starts, the declaration is stored. It is not
/// an error to repeat an equal declaration.
///
/// # Errors
/// If the code is out of bounds or has another declaration, if the name is that of an event of this crate, or if the
/// trace has no room.
pub fn declare(declaration: Declaration) -> Result<(), DeclareError> {
    let code = declaration.event.code.unwrap_or(0);
    if code == 0 || code > MAX_C_CODE {
        return Err(DeclareError::Code(code));
    }
    if RESERVED.contains(&declaration.event.name.as_str()) {
        return Err(DeclareError::ReservedName(declaration.event.name));
    }
    let mut declared = lock().ok_or(DeclareError::Busy)?;
    match declared.iter().find(|d| d.event.code == Some(code)) {
        Some(first) if first.event == declaration.event => return Ok(()),
        Some(first) => {
            let (first, second) = (Box::new(first.clone()), Box::new(declaration));
            return Err(DeclareError::Contradicts { first, second });
        }
        None => {}
    }
    if let Some(session) = current() {
        let payload = encode_declarations([&declaration].into_iter());
        if !push(&session.arena, session.pid, PacketKind::DECLARATIONS, &payload) {
            return Err(DeclareError::NoRoom);
        }
    }
    declared.push(declaration);
    Ok(())
}

/// Records the libraries that were loaded since the last call. It must not be called in signal handlers. It is called
/// automatically at a normal end of the program. Call it after `dlopen` if the program may be killed.
pub fn note_modules() {
    let Some(session) = current() else { return };
    if modules::have_changed()
        && let Some(_pushing) = lock()
    {
        let payload = encode_modules(&modules::gather(session.pid));
        push(&session.arena, session.pid, PacketKind::MODULES, &payload);
    }
}

/// The declarations so far, for the metadata of the session. Empty if another thread holds the lock, or held it in the
/// parent when this process was forked.
pub(crate) fn declared_late() -> Vec<Declaration> {
    DECLARED_LATE.try_lock().map(|declared| declared.clone()).unwrap_or_default()
}

/// Waits with a time limit, because a forked child may inherit the lock of a thread that does not exist in the child.
fn lock() -> Option<MutexGuard<'static, Vec<Declaration>>> {
    (0..1000).find_map(|_| match DECLARED_LATE.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            thread::sleep(Duration::from_millis(1));
            None
        }
    })
}

fn push(arena: &Arena, pid: Pid, kind: PacketKind, payload: &[u8]) -> bool {
    arena.push_metadata(&PacketHead::about(kind, pid, Ticks(clock::ticks())).encode(payload))
}

fn shape(declaration: &Declaration) -> String {
    let event = &declaration.event;
    let fields: Vec<_> = event.fields.iter().map(|f| format!("{}: {}", f.name, f.ty.name())).collect();
    format!("{}({}) \"{}\"", event.name, fields.join(", "), event.format)
}
