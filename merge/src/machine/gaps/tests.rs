//! Cases of gaps that no simulated machine has: sources that do not state what a CPU was doing, and CPUs with several
//! streams.

use sigmund_model::{
    Context, Cpu, Effect, Event, Level, Loss, LossKind, Lwp, LwpState, Params, Pid, Reported, Ticks,
};
use tempfile::TempDir;

use crate::{
    machine::{Intervals, Machine, Placed, lwp::Place},
    merge::MergeOptions,
    source::Recorded,
    tables::Directory,
};

const CPU: Cpu = Cpu(0);

struct Case {
    machine: Machine,
    _folder: TempDir,
}

impl Case {
    /// LWP 70 is on the CPU from tick 100 on.
    fn begin() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let directory =
            Directory::create(&folder.path().join("out"), &MergeOptions::default(), None).unwrap();
        let machine = Machine::new(Intervals::create(&directory, &[]).unwrap(), true);
        let mut case = Case { machine, _folder: folder };
        case.switch(100, 0, 70);
        case
    }

    fn take(&mut self, tick: u64, lwp: Option<u32>, effect: Effect) -> Placed {
        let event = Event {
            tick: Ticks(tick),
            kind: 0,
            cpu: Some(CPU),
            lwp: lwp.map(Lwp),
            thread: Reported::Nothing,
            context: Context::Task,
            effect,
            params: Params::default(),
        };
        let mut placed = Placed::default();
        self.machine.take(Level::Kern, None, &event, None, &mut placed).unwrap();
        placed
    }

    fn switch(&mut self, tick: u64, prev: u32, next: u32) -> Placed {
        let (prev, prev_state) = (Some(Lwp(prev)), Some(LwpState::Runnable.into()));
        self.take(tick, prev.map(|lwp| lwp.0), Effect::KernelSwitch { prev, prev_state, next: Lwp(next) })
    }

    fn missing(&mut self, from: u64, to: u64) {
        self.missing_of(CPU, from, to);
    }

    fn missing_of(&mut self, cpu: Cpu, from: u64, to: u64) {
        let loss = Loss::new(LossKind::Dropped, Level::Kern, String::new());
        let loss = Loss { cpu: Some(cpu), from: Some(Ticks(from)), to: Some(Ticks(to)), ..loss };
        self.machine.missing(&loss).unwrap();
    }
}

// CPU 0   |==70==[24 24]==  gap  ==70==[1 1]==70==|==99==
//               irq      task  NULL      irq  NULL  task       an entry may be in the gap whose exit is yet to come
#[test]
fn behind_a_gap_a_context_is_null_until_the_cpu_runs_an_lwp_again() {
    let mut case = Case::begin();
    let enter = Effect::InterruptEnter;
    let exit = Effect::InterruptExit;
    assert_eq!(case.take(110, Some(70), enter(24)).context, Some(Context::Irq));
    assert_eq!(case.take(111, Some(70), exit(24)).context, Some(Context::Irq));
    assert_eq!(case.take(112, Some(70), Effect::None).context, Some(Context::Task));
    case.missing(112, 120);
    assert_eq!(case.take(120, Some(70), Effect::None).context, None);
    assert_eq!(case.take(130, Some(70), enter(1)).context, Some(Context::Irq));
    assert_eq!(case.take(131, Some(70), exit(1)).context, Some(Context::Irq));
    assert_eq!(case.take(132, Some(70), Effect::None).context, None);
    assert_eq!(case.switch(140, 70, 99).context, Some(Context::Task), "nobody switches in an interrupt");
    assert_eq!(case.take(150, Some(99), Effect::None).context, Some(Context::Task));
}

// The same gap, in a trace whose events state what their CPU was doing: there is nothing to count.
#[test]
fn behind_a_gap_a_context_is_what_the_event_says_if_it_does() {
    let mut case = Case::begin();
    case.missing(112, 120);
    assert_eq!(case.take(120, Some(70), Effect::None).context, Some(Context::Task));
}

// CPU 0, buffer 1   |==70==            gap            ==70==
// CPU 0, buffer 2            70     ?                         ?     the LWP there, where only the CPU is stated
#[test]
fn an_event_of_another_buffer_in_a_gap_says_who_is_there_at_that_instant_and_no_more() {
    let mut case = Case::begin();
    case.missing(110, 150);
    assert_eq!(case.take(120, Some(70), Effect::None).lwp, Some(Lwp(70)));
    assert_eq!(case.take(130, None, Effect::None).lwp, None);
    assert_eq!(case.take(150, Some(70), Effect::None).lwp, Some(Lwp(70)), "the first event behind the gap");
    assert_eq!(case.take(160, None, Effect::None).lwp, Some(Lwp(70)));
}

// CPU 0   |==70==x                   70 leaves before the gap ends, or at that very tick
// CPU 1   |=====    gap    ?         no event has shown yet which LWP is there
#[test]
fn behind_a_gap_an_lwp_that_leaves_another_cpu_is_known_before_anybody_is_seen_there() {
    for (leaves, place) in [(119, Place::Lost), (120, Place::Off(LwpState::Runnable))] {
        let mut case = Case::begin();
        case.missing_of(Cpu(1), 110, 120);
        case.switch(leaves, 70, 99);
        assert_eq!(case.machine.lwps.get(Lwp(70)).map(|entry| entry.place), Some(place), "at {leaves}");
    }
}

// CPU 0   |==70==x   exit     the gap of user events of an LWP with number 70 may be that of another one
#[test]
fn an_exit_ends_a_gap_of_user_events_only_if_no_other_lwp_of_that_number_may_have_them() {
    let pid = Pid(60);
    // Whether the LWP has recorded an event; whether several LWPs had its number; whether the gap is still open.
    for (recorded, several, is_open) in [(true, false, false), (false, false, true), (true, true, true)] {
        let mut case = Case::begin();
        case.machine.expect(&Recorded { lwp: Lwp(70), pid, last: Ticks(105), several });
        if recorded {
            let event = Event { tick: Ticks(105), lwp: Some(Lwp(70)), ..Event::default() };
            case.machine.take(Level::User, Some(pid), &event, None, &mut Placed::default()).unwrap();
        }
        let loss = Loss::new(LossKind::Dropped, Level::User, String::new());
        case.machine.missing(&Loss { lwp: Some(Lwp(70)), ..loss }).unwrap();
        assert!(case.machine.gaps.hide_threads(Some(pid)));
        case.take(110, Some(70), Effect::LwpExit);
        let (prev, prev_state) = (Some(Lwp(70)), Some(LwpState::Exited.into()));
        case.take(111, Some(70), Effect::KernelSwitch { prev, prev_state, next: Lwp(0) });
        let found = case.machine.gaps.hide_threads(Some(pid));
        assert_eq!(found, is_open, "recorded {recorded}, several {several}");
    }
}
