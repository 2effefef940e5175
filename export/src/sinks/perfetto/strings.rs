//! Interned strings (`InternedData`).
//!
//! A number is valid from the packet that defines it until the incremental state of the sequence is cleared. The state
//! is cleared when the defined names exceed [`MAX_LEN`] bytes, so memory is bounded.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{EventType, Level};

use super::{schema::interned, wire::Wire};
use crate::timeline::{Actors, DetailedState, EventTypeId, SliceKind, ThreadId};

/// Maximum memory of the defined names, in bytes.
const MAX_LEN: usize = 4 << 20;

/// Memory of a name without its text, in bytes.
const ENTRY_LEN: usize = 64;

/// Names that are always defined, by their index in [`FIXED_NAMES`].
#[derive(Clone, Copy)]
pub(super) enum FixedName {
    Wakes,
    Woken,
    Leaves,
    Arrives,
}

const FIXED_NAMES: [&str; 4] = ["wakes", "woken", "leaves", "arrives"];

/// Categories, by their index in [`CATEGORIES`].
#[derive(Clone, Copy)]
pub(super) enum Category {
    State,
    Mounted,
    Executing,
    Wakeup,
    Migration,
    User,
    Kernel,
    Slice(SliceKind),
}

const CATEGORIES: [&str; 7] = ["state", "mounted", "executing", "wakeup", "migration", "user", "kernel"];

/// Names of annotations that are not fields of events, by their index in [`NOTES`]. If a field of an event has the same
/// name, both are shown.
#[derive(Clone, Copy)]
pub(super) enum Note {
    Lwp,
    Cpu,
    BlockedOn,
    Thread,
    OnLwp,
    OnCpu,
    CpuSeen,
}

const NOTES: [&str; 7] = ["lwp", "cpu", "blocked on", "thread", "on lwp", "on cpu", "cpu seen"];

/// The number of a string.
pub(super) type Iid = u64;

/// Numbers of an event's names.
#[derive(Clone, Copy)]
pub(super) struct EventNames {
    /// The number of the event's name.
    pub(super) name: Iid,
    /// The number of the first field's name. The numbers of the other fields follow, two for each field: for the value,
    /// and for the value's name.
    fields: Iid,
}

impl EventNames {
    /// The number of a field's name.
    pub(super) fn field(self, index: usize) -> Iid {
        self.fields + 2 * index as Iid
    }

    /// The number of the annotation for a value's name: `irq` is 24, `irq name` is eth0.
    pub(super) fn name_of_field(self, index: usize) -> Iid {
        self.field(index) + 1
    }
}

/// A number that is valid until the state is cleared.
#[derive(Clone, Copy, Default)]
struct Interned<T> {
    generation: u32,
    iids: T,
}

/// The currently defined names.
pub(super) struct Strings {
    generation: u32,
    names: HashMap<Box<str>, Iid, RandomState>,
    next_name: Iid,
    next_annotation: Iid,
    bytes: usize,
    threads: HashMap<ThreadId, Iid, RandomState>,
    kinds: Vec<Interned<(Iid, Iid)>>,
    /// Definitions that are not yet in a packet.
    unsent: Vec<u8>,
    cleared: bool,
}

impl Strings {
    pub(super) fn new(actors: &Actors) -> Strings {
        let mut strings = Strings {
            generation: 0,
            names: HashMap::default(),
            next_name: 0,
            next_annotation: 0,
            bytes: 0,
            threads: HashMap::default(),
            kinds: vec![Interned::default(); actors.event_types.len()],
            unsent: Vec::new(),
            cleared: false,
        };
        strings.clear();
        strings
    }

    /// Clears the state if there are too many names. Numbers returned before are then invalid.
    #[inline]
    pub(super) fn make_room(&mut self) {
        if self.bytes > MAX_LEN {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.generation += 1;
        self.names.clear();
        self.threads.clear();
        self.bytes = 0;
        self.unsent.clear();
        self.cleared = true;
        for (index, kind) in SliceKind::ALL.iter().map(|kind| kind.name()).chain(CATEGORIES).enumerate() {
            self.define(interned::EVENT_CATEGORIES, index as Iid + 1, kind);
        }
        for (index, note) in NOTES.iter().enumerate() {
            self.define(interned::DEBUG_ANNOTATION_NAMES, index as Iid + 1, note);
        }
        let states = DetailedState::all().map(DetailedState::name);
        for (index, name) in states.chain(FIXED_NAMES).enumerate() {
            self.define(interned::EVENT_NAMES, index as Iid + 1, name);
        }
        self.next_name = (DetailedState::COUNT + FIXED_NAMES.len()) as Iid + 1;
        self.next_annotation = NOTES.len() as Iid + 1;
    }

    /// Calls `with` with the contents for the next packet: definitions, and whether the state is cleared. To be called
    /// once for each packet.
    #[inline]
    pub(super) fn take_unsent(&mut self, with: impl FnOnce(&[u8], bool)) {
        with(&self.unsent, self.cleared);
        self.unsent.clear();
        self.cleared = false;
    }

    #[inline]
    pub(super) fn category(category: Category) -> Iid {
        match category {
            Category::Slice(kind) => kind as Iid + 1,
            Category::State => own_category(0),
            Category::Mounted => own_category(1),
            Category::Executing => own_category(2),
            Category::Wakeup => own_category(3),
            Category::Migration => own_category(4),
            Category::User => own_category(5),
            Category::Kernel => own_category(6),
        }
    }

    #[inline]
    pub(super) fn note(note: Note) -> Iid {
        note as Iid + 1
    }

    #[inline]
    pub(super) fn state(detailed: DetailedState) -> Iid {
        detailed.index() as Iid + 1
    }

    #[inline]
    pub(super) fn fixed(name: FixedName) -> Iid {
        DetailedState::COUNT as Iid + name as Iid + 1
    }

    /// The number of a name.
    #[inline]
    pub(super) fn name(&mut self, name: &str) -> Iid {
        if let Some(iid) = self.names.get(name) {
            return *iid;
        }
        let iid = self.new_name(name);
        self.names.insert(name.into(), iid);
        iid
    }

    /// The number of a user thread's label.
    #[inline]
    pub(super) fn thread(&mut self, actors: &Actors, thread: ThreadId) -> Iid {
        if let Some(iid) = self.threads.get(&thread) {
            return *iid;
        }
        let iid = self.new_name(&actors.thread_label(thread));
        self.threads.insert(thread, iid);
        iid
    }

    /// The numbers of an event's names.
    #[inline]
    pub(super) fn event(&mut self, actors: &Actors, kind: EventTypeId) -> EventNames {
        let mut known = self.kinds[kind.index()];
        if known.generation != self.generation {
            known = Interned { generation: self.generation, iids: self.new_event(&actors[kind]) };
            self.kinds[kind.index()] = known;
        }
        EventNames { name: known.iids.0, fields: known.iids.1 }
    }

    fn new_event(&mut self, ty: &EventType) -> (Iid, Iid) {
        let name = self.new_name(&ty.name);
        let fields = self.next_annotation;
        for field in &ty.fields {
            self.new_annotation(&field.name);
            self.new_annotation(&format!("{} name", field.name));
        }
        (name, fields)
    }

    fn new_name(&mut self, name: &str) -> Iid {
        let iid = self.next_name;
        self.next_name += 1;
        self.define(interned::EVENT_NAMES, iid, name);
        iid
    }

    fn new_annotation(&mut self, name: &str) {
        let iid = self.next_annotation;
        self.next_annotation += 1;
        self.define(interned::DEBUG_ANNOTATION_NAMES, iid, name);
    }

    fn define(&mut self, table: u32, iid: Iid, name: &str) {
        self.bytes += name.len() + ENTRY_LEN;
        self.unsent.message(table, |entry| {
            entry.number(interned::ENTRY_IID, iid);
            entry.text(interned::ENTRY_NAME, name);
        });
    }
}

/// The number of a category in [`CATEGORIES`]; the numbers of the kinds of slices precede it.
const fn own_category(index: usize) -> Iid {
    (SliceKind::ALL.len() + index + 1) as Iid
}

/// The category of an event.
pub(super) fn level(level: Level) -> Category {
    match level {
        Level::User => Category::User,
        Level::Kern => Category::Kernel,
    }
}
