//! Determines which events are recorded. The key mask switches groups of events, and each event has its own switch.
//!
//! An event is on when the process records, its key is in the mask, and it was not switched off by name. All changes of
//! these three conditions go through [`apply`], one thread at a time.

use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use sigmund_model::FieldType;

use super::{
    EventDecl, SwitchError,
    event::{DECLARED, in_order_of_names},
};

/// The key mask; 0 as long as nothing is recorded, except for the keys of C programs. C programs test its upper half
/// (`fut_keys`, fut.h).
#[unsafe(export_name = "fut_keys")]
pub(super) static MASK: AtomicU64 = AtomicU64::new(0);

/// Whether the process records, possibly with an empty mask.
pub(super) static RECORDING: AtomicBool = AtomicBool::new(false);

/// Number of the process that has a thread which is switching; 0 for none. In a child made by a raw `clone`, this is
/// the number of the parent if another thread of the parent was switching. That thread does not exist in the child.
static TURN: AtomicU32 = AtomicU32::new(0);

/// A guard of [`TURN`]. It is not a `Mutex`, because `fork` takes it in the parent, and releases it in both processes.
struct Turn;

impl Turn {
    fn take() -> Turn {
        wait_for(&TURN);
        Turn
    }

    fn give_back() {
        TURN.store(0, Ordering::Release);
    }
}

/// Waits until no thread of this process has the turn, and takes it.
fn wait_for(turn: &AtomicU32) {
    let own = std::process::id();
    loop {
        let found = turn.load(Ordering::Relaxed);
        // Acquire: pairs with the Release in `give_back`; makes the previous holder's changes of code visible.
        let taken = || turn.compare_exchange(found, own, Ordering::Acquire, Ordering::Relaxed);
        if found != own && taken().is_ok() {
            return;
        }
        // A switch takes about 10 µs. Spinning could prevent a thread of lower priority from finishing it.
        std::thread::sleep(Duration::from_micros(20));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Turn::give_back();
    }
}

/// Called before `fork`. Ensures that no thread is switching probes when the child is created.
pub(crate) fn before_fork() {
    std::mem::forget(Turn::take());
}

/// Called after `fork`, in parent and child.
pub(crate) fn after_fork() {
    Turn::give_back();
}

/// The process-wide part of the decision which events are recorded.
#[derive(Clone, Copy)]
struct Groups {
    recording: bool,
    mask: u64,
}

/// Replaces the process-wide state by what `groups` returns for it. Sets the switch of each event to what `choose`
/// returns (`None`: unchanged).
fn apply(
    groups: impl FnOnce(Groups) -> Groups,
    choose: impl Fn(&EventDecl) -> Option<bool>,
) -> Result<(), SwitchError> {
    let _turn = Turn::take();
    let before = Groups { recording: RECORDING.load(Ordering::Relaxed), mask: MASK.load(Ordering::Relaxed) };
    let Groups { recording, mask } = groups(before);
    let off = |event: &EventDecl| choose(event).unwrap_or(event.is_switched_off());
    #[cfg(all(target_arch = "x86_64", not(fut_no_patching)))]
    super::patch::patch(super::site::changes(recording, |event| {
        recording && mask & event.key() != 0 && !off(event)
    }))?;
    DECLARED.iter().for_each(|event| event.switch_off(off(event)));
    MASK.store(mask, Ordering::Relaxed);
    RECORDING.store(recording, Ordering::Relaxed);
    Ok(())
}

/// Starts recording: switches on the events that are in `mask` and not switched off by name.
pub(crate) fn start_recording(mask: u64) -> Result<(), SwitchError> {
    apply(|_| Groups { recording: true, mask }, |_| None)
}

/// Stops recording: switches all events off.
pub(crate) fn stop_recording() -> Result<(), SwitchError> {
    apply(|_| Groups { recording: false, mask: 0 }, |_| None)
}

/// Whether this process records now.
pub fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Replaces the key mask by what `change` returns for it. Returns both masks; `None` if the process does not record.
pub(super) fn change_mask(change: impl FnOnce(u64) -> u64) -> Result<Option<(u64, u64)>, SwitchError> {
    let mut changed = None;
    let set = |groups: Groups| {
        if !groups.recording {
            return groups;
        }
        let mask = change(groups.mask);
        changed = Some((groups.mask, mask));
        Groups { mask, ..groups }
    };
    apply(set, |_| None)?;
    Ok(changed)
}

/// An event that the program declares.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    event: &'static EventDecl,
}

impl EventInfo {
    /// The name of the event.
    pub fn name(&self) -> &'static str {
        self.event.name()
    }

    /// The code of the event in its records; 0 if the process has not recorded yet.
    pub(crate) fn code(&self) -> u32 {
        self.event.code()
    }

    /// Names and types of the fields.
    pub fn fields(&self) -> &'static [(&'static str, FieldType)] {
        self.event.fields()
    }

    /// The key mask that switches the event.
    pub fn key(&self) -> u64 {
        self.event.key()
    }

    /// Source file of the declaration.
    pub fn file(&self) -> &'static str {
        self.event.place().0
    }

    /// Line of the declaration.
    pub fn line(&self) -> u32 {
        self.event.place().1
    }

    /// Whether the event is recorded now.
    pub fn is_on(&self) -> bool {
        super::keys::enabled(self.key()) && !self.event.is_switched_off()
    }

    /// For measuring the cost of the event: records it once, if it is on, with typical values for its types. Uses the
    /// same code as a probe.
    pub fn record_sample(&self) {
        self.event.record_sample();
    }
}

/// The events that this program declares, including those of this crate, ordered by name. An event with several
/// declarations is listed once.
pub fn declared_events() -> impl Iterator<Item = EventInfo> {
    let mut events = in_order_of_names();
    events.dedup_by_key(|event| event.name());
    events.into_iter().map(|event| EventInfo { event })
}

/// Switches the events whose name matches `pattern` on or off. Returns the number of matches. `*` matches any
/// characters.
///
/// Events that are switched off stay off, in this process and in the processes that it forks, until they are switched
/// on again. Events that are switched on are recorded if the process records and their [key](super::keys) is on. After
/// it returns, no thread begins to record an event that was switched off. A record that was begun before may still be
/// finished.
///
/// It takes a lock and makes system calls, so it must not be called in signal handlers.
///
/// # Errors
/// If the pattern is invalid, or the kernel does not allow the code to be modified. Then nothing is switched.
pub fn switch_events(pattern: &str, on: bool) -> Result<usize, SwitchEventsError> {
    check(pattern)?;
    let fits = |event: &EventDecl| fits(pattern.as_bytes(), event.name().as_bytes());
    apply(|groups| groups, |event| fits(event).then_some(!on)).map_err(SwitchEventsError::Switch)?;
    Ok(declared_events().filter(|info| fits(info.event)).count())
}

/// Why events could not be switched by name. None was switched.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwitchEventsError {
    /// The pattern is invalid.
    Pattern {
        /// The pattern.
        pattern: String,
        /// The invalid part.
        found: String,
    },
    /// The probes could not be switched.
    Switch(SwitchError),
}

impl fmt::Display for SwitchEventsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchEventsError::Pattern { pattern, found } => {
                write!(
                    f,
                    "pattern {pattern:?}: expected the name of an event, with * for any characters, found {found}"
                )
            }
            SwitchEventsError::Switch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SwitchEventsError {}

/// Maximum length of a pattern. Longer than any realistic name.
const MAX_PATTERN: usize = 256;

fn check(pattern: &str) -> Result<(), SwitchEventsError> {
    let wrong = |found: String| {
        let pattern = pattern.chars().take(MAX_PATTERN).collect();
        Err(SwitchEventsError::Pattern { pattern, found })
    };
    if pattern.is_empty() {
        return wrong("nothing".into());
    }
    if pattern.len() > MAX_PATTERN {
        return wrong(format!("{} bytes, more than {MAX_PATTERN}", pattern.len()));
    }
    match pattern.chars().find(|c| !(c.is_alphanumeric() || "_*.:".contains(*c))) {
        Some(character) => wrong(format!("{character:?}")),
        None => Ok(()),
    }
}

/// Whether a name matches a pattern of [`switch_events`].
pub(crate) fn name_fits(pattern: &str, name: &str) -> bool {
    fits(pattern.as_bytes(), name.as_bytes())
}

/// Whether a name matches a pattern. Backtracks only to the last star, so it takes at most time proportional to the
/// product of the two lengths.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((behind_star, swallowed)) = star {
            star = Some((behind_star, swallowed + 1));
            (p, n) = (behind_star, swallowed + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        let fitting = |pattern: &str| {
            let names = ["USER_THREAD_NEW", "USER_THREAD_READY", "round", "LWP_ATTACH"];
            names.into_iter().filter(|name| fits(pattern.as_bytes(), name.as_bytes())).collect::<Vec<_>>()
        };
        assert_eq!(fitting("round"), ["round"]);
        assert_eq!(fitting("roun"), [""; 0]);
        assert_eq!(fitting("USER_*"), ["USER_THREAD_NEW", "USER_THREAD_READY"]);
        assert_eq!(fitting("*_T*_READY"), ["USER_THREAD_READY"]);
        assert_eq!(fitting("*A*A*H"), ["LWP_ATTACH"]);
        assert_eq!(fitting("**").len(), 4);
        assert_eq!(fitting("*x*"), [""; 0]);
    }

    #[test]
    fn a_turn_that_a_thread_of_another_process_had_is_taken() {
        // Like in a child whose parent was switching when the child was cloned.
        let turn = AtomicU32::new(u32::MAX);
        wait_for(&turn);
        assert_eq!(turn.load(Ordering::Relaxed), std::process::id());
    }

    #[test]
    fn an_invalid_pattern_switches_nothing_and_the_error_names_the_reason() {
        for (pattern, found) in [("", "nothing"), ("a b", "' '"), ("a\n", "'\\n'"), ("[a-z]*", "'['")] {
            let error = switch_events(pattern, false).unwrap_err().to_string();
            assert!(error.contains(&format!("found {found}")), "{error}");
        }
        assert!(switch_events(&"x".repeat(257), false).unwrap_err().to_string().contains("257 bytes"));
        assert!(DECLARED.iter().all(|event| !event.is_switched_off()));
    }

    #[test]
    fn the_events_of_this_crate_are_declared() {
        let event = declared_events().find(|event| event.name() == "LWP_ATTACH").expect("declared");
        assert_eq!(event.fields(), [("cpu_time_ns", FieldType::U64)]);
        assert_eq!(event.key(), crate::keys::LWP);
        assert!(event.file().ends_with("attach.rs") && event.line() > 0);
        assert!(!event.is_on());
    }
}
