//! Interned strings (`InternedData`).
//!
//! A number is valid from the packet that defines it until the state of the sequence is cleared. It is cleared whenever more
//! than [`LIMIT`] bytes of names are known, so memory is bounded.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{EventType, Level};

use super::{schema::interned, wire::Wire};
use crate::timeline::{Actors, DetailedState, EventTypeId, SliceKind, ThreadId};

/// Most bytes of names that are known at one time.
const LIMIT: usize = 4 << 20;

/// Memory of a name beside its text, in bytes.
const ENTRY: usize = 64;

/// Names that are always known, by their index in [`FIXED_NAMES`].
#[derive(Clone, Copy)]
pub(super) enum Fixed {
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

/// Names of our own annotations, by their index in [`NOTES`]. An event's field may have one of these names, too, although a
/// blank in it is unlikely; then both are shown.
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
    /// The number of its first field's name. Those of the other fields follow, two each: for the value, and for the value's name.
    fields: Iid,
}

impl EventNames {
    /// The number of a field's name.
    pub(super) fn field(self, index: usize) -> Iid {
        self.fields + 2 * index as Iid
    }

    /// The number of the name for its value's name: `irq` is 24, `irq name` is eth0.
    pub(super) fn name_of_field(self, index: usize) -> Iid {
        self.field(index) + 1
    }
}

/// A number that is valid until the state is cleared.
#[derive(Clone, Copy, Default)]
struct Known<T> {
    generation: u32,
    iids: T,
}

/// The names that are known now.
pub(super) struct Strings {
    generation: u32,
    names: HashMap<Box<str>, Iid, RandomState>,
    next_name: Iid,
    next_annotation: Iid,
    bytes: usize,
    threads: Vec<Known<Iid>>,
    kinds: Vec<Known<(Iid, Iid)>>,
    /// Definitions that are in no packet yet.
    fresh: Vec<u8>,
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
            threads: vec![Known::default(); actors.threads.len()],
            kinds: vec![Known::default(); actors.event_types.len()],
            fresh: Vec::new(),
            cleared: false,
        };
        strings.clear();
        strings
    }

    /// Clears the state, if there are too many names. Numbers that were returned before are then invalid.
    #[inline]
    pub(super) fn make_room(&mut self) {
        if self.bytes > LIMIT {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.generation += 1;
        self.names.clear();
        self.bytes = 0;
        self.fresh.clear();
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

    /// What the next packet must contain: definitions, and whether the state is cleared. Called once for each packet.
    #[inline]
    pub(super) fn take_fresh(&mut self, with: impl FnOnce(&[u8], bool)) {
        with(&self.fresh, self.cleared);
        self.fresh.clear();
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
    pub(super) fn fixed(name: Fixed) -> Iid {
        DetailedState::COUNT as Iid + name as Iid + 1
    }

    /// The number of any name.
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
        let known = self.threads[thread.index()];
        if known.generation == self.generation {
            return known.iids;
        }
        let iids = self.new_name(&actors[thread].label());
        self.threads[thread.index()] = Known { generation: self.generation, iids };
        iids
    }

    /// The numbers of an event's names.
    #[inline]
    pub(super) fn event(&mut self, actors: &Actors, kind: EventTypeId) -> EventNames {
        let mut known = self.kinds[kind.index()];
        if known.generation != self.generation {
            known = Known { generation: self.generation, iids: self.new_event(&actors[kind]) };
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
        self.bytes += name.len() + ENTRY;
        self.fresh.message(table, |entry| {
            entry.number(interned::ENTRY_IID, iid);
            entry.text(interned::ENTRY_NAME, name);
        });
    }
}

/// After the kinds of slices.
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
