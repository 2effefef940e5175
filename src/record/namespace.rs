//! Processes in other PID namespaces: translates the numbers in their user traces to the numbers in this namespace. An
//! LWP is looked up after it has begun its first packet. If its process has ended by then, it is not found.

use std::collections::{BTreeMap, BTreeSet};

use fut::{
    drain::{ProcessArena, lwps_in_namespace},
    shm::Arena,
};
use sigmund_merge::NamespaceNumbers;
use sigmund_model::{Lwp, Pid};

/// The maximum number of LWPs of a process that are looked up, because the process may write anything into its arena.
const MOST: usize = 1 << 16;

/// The numbers of one process.
pub(super) struct Namespace {
    host: Pid,
    lwps: BTreeMap<u32, u32>,
    looked_for: BTreeSet<u32>,
}

impl Namespace {
    /// The numbers of a process, if it is in another namespace than this process.
    pub(super) fn of(arena: &ProcessArena) -> Option<Namespace> {
        let mut namespace =
            Namespace { host: arena.peer(), lwps: BTreeMap::new(), looked_for: BTreeSet::new() };
        namespace.add(arena.in_namespace()?);
        Some(namespace)
    }

    /// Looks up the LWPs that have begun to record.
    pub(super) fn look(&mut self, arena: &Arena) {
        let mut is_new = false;
        for lwp in arena.rings().map(|ring| ring.lwp().0).filter(|lwp| *lwp != 0) {
            is_new |=
                self.looked_for.len() < MOST && self.looked_for.insert(lwp) && !self.lwps.contains_key(&lwp);
        }
        if is_new {
            self.add(&lwps_in_namespace(self.host).unwrap_or_default());
        }
    }

    fn add(&mut self, numbers: &[(Lwp, Lwp)]) {
        self.lwps.extend(numbers.iter().map(|(inside, here)| (inside.0, here.0)));
    }

    pub(super) fn numbers(self) -> NamespaceNumbers {
        NamespaceNumbers { pid: self.host.0, lwps: self.lwps.into_iter().collect() }
    }
}

/// The numbers of a process that is still alive.
pub(super) fn numbers_of(host: Pid) -> Option<NamespaceNumbers> {
    let lwps = lwps_in_namespace(host)?.into_iter().map(|(inside, here)| (inside.0, here.0));
    Some(NamespaceNumbers { pid: host.0, lwps: lwps.collect() })
}
