//! Numbers for groups of user threads and LWPs, so that rows need no texts.

use crate::map::Map;

use crate::{By, Group, History, Level, Request};

/// A user thread, or an LWP that carries none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    Thread(u64),
    Lwp(u32),
}

impl Owner {
    /// `None` if neither is known.
    pub(crate) fn new(thread: Option<u64>, lwp: Option<u32>) -> Option<Owner> {
        thread.map(Owner::Thread).or(lwp.map(Owner::Lwp))
    }

    pub(crate) fn process(self, history: &History) -> Option<u32> {
        match self {
            Owner::Thread(thread) => history.names.threads.get(thread)?.pid,
            Owner::Lwp(lwp) => history.names.lwps.get(lwp)?.pid,
        }
    }
}

/// The groups of an answer, numbered in the order in which they occur.
#[derive(Debug)]
pub(crate) struct Groups<'h> {
    history: &'h History,
    by: By,
    level: Level,
    numbers: Map<Group, u32>,
    known: Map<(Option<u64>, Option<u32>), Option<u32>>,
    groups: Vec<Group>,
}

impl<'h> Groups<'h> {
    pub(crate) fn new(history: &'h History, request: &Request) -> Groups<'h> {
        Groups {
            history,
            by: request.by(history),
            level: request.level(history),
            numbers: Map::default(),
            known: Map::default(),
            groups: Vec::new(),
        }
    }

    /// The number of the group of a user thread, or of an LWP without one. If rows are by user thread, such an LWP has
    /// no group.
    pub(crate) fn number(&mut self, thread: Option<u64>, lwp: Option<u32>) -> Option<u32> {
        let lwp = lwp.filter(|_| self.level == Level::Lwps || thread.is_none());
        if let Some(number) = self.known.get(&(thread, lwp)) {
            return *number;
        }
        let number = self.of(thread, lwp).map(|group| self.number_of(group));
        self.known.insert((thread, lwp), number);
        number
    }

    /// As [`number`](Self::number), for an owner that is asked for only once: if it is a group of its own, nothing is
    /// looked up, and it gets a new number.
    pub(crate) fn number_of_owner(&mut self, owner: Owner) -> Option<u32> {
        let (thread, lwp) = match owner {
            Owner::Thread(thread) => (Some(thread), None),
            Owner::Lwp(lwp) => (None, Some(lwp)),
        };
        match self.by {
            By::Thread | By::Lwp => {
                let group = self.of(thread, lwp)?;
                self.groups.push(group);
                Some(self.groups.len() as u32 - 1)
            }
            By::Process | By::Name | By::Pattern => self.number(thread, lwp),
        }
    }

    fn of(&self, thread: Option<u64>, lwp: Option<u32>) -> Option<Group> {
        let (history, by) = (self.history, self.by);
        match (self.level, by, thread, lwp) {
            (Level::Threads, _, Some(thread), _) => Some(Group::of_thread(history, by, thread)),
            (Level::Threads, By::Thread, None, _) => None,
            (_, _, _, lwp) => lwp.map(|lwp| Group::of_lwp(history, by, lwp)),
        }
    }

    /// The number of the group of what is in no other.
    pub(crate) fn nobody(&mut self) -> u32 {
        self.number_of(Group::nobody(self.by))
    }

    fn number_of(&mut self, group: Group) -> u32 {
        let next = self.groups.len() as u32;
        *self.numbers.entry(group).or_insert_with_key(|group| {
            self.groups.push(group.clone());
            next
        })
    }

    /// All groups, in the order of their numbers.
    pub(crate) fn into_groups(self) -> Vec<Group> {
        self.groups
    }

    /// The group with this number.
    pub(crate) fn group(&self, number: u32) -> &Group {
        &self.groups[number as usize]
    }
}
