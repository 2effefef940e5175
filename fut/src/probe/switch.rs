//! Which events are recorded: the key mask for groups of them, and a switch for each.
//!
//! An event is on when the process records, its key is in the mask, and it was not switched off by name. Whatever
//! changes one of the three goes through [`apply`], one thread at a time.

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

/// 0 as long as nothing is recorded, the keys of C programs excepted.
/// C programs test its upper half (`fut_keys`, fut.h).
#[unsafe(export_name = "fut_keys")]
pub(super) static MASK: AtomicU64 = AtomicU64::new(0);

/// Whether the process records; it may do so with an empty mask for a while.
pub(super) static RECORDING: AtomicBool = AtomicBool::new(false);

/// The process of which a thread switches, while the others wait; 0 is none. A child that a raw `clone` made has its
/// parent's number here if another thread of the parent was switching then: that thread is not in the child.
static TURN: AtomicU32 = AtomicU32::new(0);

/// The turn to switch. Not a `Mutex`: `fork` takes it in the parent, and gives it back in parent and child.
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
        // Acquire: pairs with the Release in `give_back`; what the one before wrote into code is seen.
        let taken = || turn.compare_exchange(found, own, Ordering::Acquire, Ordering::Relaxed);
        if found != own && taken().is_ok() {
            return;
        }
        // A switch takes some 10 µs. Spinning could keep a thread of lower priority from finishing it.
        std::thread::sleep(Duration::from_micros(20));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Turn::give_back();
    }
}

/// Before a `fork`: no thread is switching probes when the child is made.
pub(crate) fn before_fork() {
    std::mem::forget(Turn::take());
}

/// After it, in parent and child.
pub(crate) fn after_fork() {
    Turn::give_back();
}

/// What decides which events are on, beside their own switches.
#[derive(Clone, Copy)]
struct Groups {
    recording: bool,
    mask: u64,
}

/// Sets what `groups` makes of what was, and whether each event is switched off by name as `choose` says (`None`: as
/// it was).
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

/// Switches on what is in `mask` and not switched off by name: there is a session now.
pub(crate) fn start_recording(mask: u64) -> Result<(), SwitchError> {
    apply(|_| Groups { recording: true, mask }, |_| None)
}

/// Switches everything off.
pub(crate) fn stop_recording() -> Result<(), SwitchError> {
    apply(|_| Groups { recording: false, mask: 0 }, |_| None)
}

/// Whether this process records now.
pub fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Sets the key mask, if the process records.
pub(super) fn set_mask(mask: u64) -> Result<(), SwitchError> {
    let set = |groups: Groups| if groups.recording { Groups { mask, ..groups } } else { groups };
    apply(set, |_| None)
}

/// An event that the program declares.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    event: &'static EventDecl,
}

impl EventInfo {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.event.name()
    }

    /// The code its records carry; 0 as long as the process has not recorded.
    pub(crate) fn code(&self) -> u32 {
        self.event.code()
    }

    /// Names and types of its fields.
    pub fn fields(&self) -> &'static [(&'static str, FieldType)] {
        self.event.fields()
    }

    /// The key mask that switches it.
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

    /// Whether it is recorded now.
    pub fn is_on(&self) -> bool {
        super::keys::enabled(self.key()) && !self.event.is_switched_off()
    }

    /// Records it once, if it is on, through a probe like any other, with parameters that are typical of its types:
    /// so its cost can be measured.
    pub fn record_sample(&self) {
        self.event.record_sample();
    }
}

/// The events that this program declares, those of this crate included, in the order of their names. An event that
/// is declared in several places is there once.
pub fn declared_events() -> impl Iterator<Item = EventInfo> {
    let mut events = in_order_of_names();
    events.dedup_by_key(|event| event.name());
    events.into_iter().map(|event| EventInfo { event })
}

/// Switches the events whose name matches `pattern` on or off; returns the number of matches. `*` matches any characters.
///
/// What is switched off stays off, in this process and in those it forks, until it is switched on again; what is
/// switched on is recorded if the process records and the [key](super::keys) is on. When it returns, no thread
/// begins to record an event that was switched off; one that had begun may still finish.
///
/// Takes a lock and makes system calls: not for signal handlers.
///
/// # Errors
/// When the pattern cannot be one, or the kernel does not let code be changed. Then nothing is switched.
pub fn switch_events(pattern: &str, on: bool) -> Result<usize, SwitchEventsError> {
    check(pattern)?;
    let fits = |event: &EventDecl| fits(pattern.as_bytes(), event.name().as_bytes());
    apply(|groups| groups, |event| fits(event).then_some(!on)).map_err(SwitchEventsError::Switch)?;
    Ok(declared_events().filter(|info| fits(info.event)).count())
}

/// Why events could not be switched by name. None was.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwitchEventsError {
    /// No event can have such a name.
    Pattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
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

/// Longer than any realistic name.
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

/// Whether a name fits a pattern. Goes back to the last star only, so its time is at most the product of the lengths.
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
    fn a_star_stands_for_any_characters() {
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
        // As a child finds it whose parent was switching when it was cloned.
        let turn = AtomicU32::new(u32::MAX);
        wait_for(&turn);
        assert_eq!(turn.load(Ordering::Relaxed), std::process::id());
    }

    #[test]
    fn a_pattern_that_cannot_be_one_switches_nothing_and_says_why() {
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
