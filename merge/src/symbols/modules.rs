//! Finds the mapping that an address is in.

use fut::trace::Module;

/// A limit for damaged traces: no program has that many mappings.
const MAX_MODULES: usize = 1 << 16;

/// The executable mappings of one trace.
#[derive(Debug)]
pub(super) struct Modules {
    /// Sorted by their start, each start once.
    by_start: Vec<Module>,
}

impl Modules {
    /// If two mappings have the same start, the later one counts.
    pub(super) fn of(modules: &[Module]) -> Modules {
        let usable = |module: &&Module| module.start < module.end && !module.path.is_empty();
        let mut by_start: Vec<Module> =
            modules.iter().rev().filter(usable).take(MAX_MODULES).cloned().collect();
        by_start.sort_by_key(|module| module.start);
        by_start.dedup_by_key(|module| module.start);
        Modules { by_start }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    pub(super) fn containing(&self, address: u64) -> Option<&Module> {
        let behind = self.by_start.partition_point(|module| module.start <= address);
        self.by_start.get(behind.checked_sub(1)?).filter(|module| address < module.end)
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::Pid;

    use super::*;

    fn module(start: u64, end: u64, path: &str) -> Module {
        Module { pid: Pid(1), start, end, offset: 0, path: path.into(), build_id: String::new() }
    }

    #[test]
    fn an_address_is_in_one_mapping_and_the_later_said_counts() {
        let said =
            [module(100, 200, "/a"), module(300, 400, "/b"), module(300, 350, "/c"), module(9, 9, "/d")];
        let modules = Modules::of(&said);
        let path = |address| modules.containing(address).map(|m| m.path.as_str());
        assert_eq!([0, 9, 99, 100, 199, 200].map(path), [None, None, None, Some("/a"), Some("/a"), None]);
        assert_eq!([300, 349, 350, u64::MAX].map(path), [Some("/c"), Some("/c"), None, None]);
    }
}
