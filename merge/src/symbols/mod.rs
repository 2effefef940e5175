//! Names for the addresses in user events. Names of spans and traced functions come from the trace itself. Names of
//! code come from the symbols of the binaries that were mapped.
//!
//! A name is `compute at lu.c:42`, or `compute` if there are no source lines. Every field that is a pointer is looked
//! up. Addresses outside executable mappings stay numbers. If names are missing, this is reported once per binary.

mod binary;
mod debug_file;
mod modules;
mod stream;

use std::{collections::HashMap, path::Path, sync::Arc};

use fut::trace::{Module, UserTrace};
use sigmund_model::{Level, Loss, LossKind, Severity};

use self::{binary::Binary, modules::Modules};
pub(crate) use stream::named;

/// Maximum number of names that are kept. If there are more distinct addresses, they are looked up again.
const MAX_CACHED: usize = 1 << 20;
/// Maximum number of binaries that are opened for one trace.
const MAX_BINARIES: usize = 1 << 10;

/// The kind of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// The first instruction of a function, or any other instruction.
    Code,
    /// The return address of a call. The instruction before it is the call.
    Return,
}

/// The names of one user trace.
pub(crate) struct Symbols {
    trace: String,
    modules: Modules,
    /// By path; `None` if the binary cannot be used.
    binaries: HashMap<String, Option<Binary>>,
    names: HashMap<(u64, Address), Option<Arc<str>>>,
    /// Number of function events whose address is in no mapping.
    homeless: u64,
    losses: Vec<Loss>,
}

impl Symbols {
    /// The names of this trace. No binary is opened yet.
    pub(crate) fn of(trace: &UserTrace, path: &Path) -> Symbols {
        let place = |p: &fut::trace::NamedPlace| {
            ((p.address, Address::Code), Some(name_with_line(&p.name, Some((&p.file, p.line)))))
        };
        Symbols {
            trace: path.display().to_string(),
            modules: Modules::of(trace.modules()),
            binaries: HashMap::new(),
            names: trace.places().iter().take(MAX_CACHED).map(place).collect(),
            homeless: 0,
            losses: Vec::new(),
        }
    }

    /// Whether there is nothing from which names could be derived.
    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.names.is_empty()
    }

    /// The name of an address. If it is `expected` to be code but is in no mapping, that is counted.
    fn name(&mut self, address: u64, what: Address, expected: bool) -> Option<Arc<str>> {
        if let Some(name) = self.names.get(&(address, what)) {
            return name.clone();
        }
        let Some(module) = self.modules.containing(address).cloned() else {
            self.homeless += u64::from(expected);
            return None;
        };
        let name = self.look_up(&module, address, what);
        if self.names.len() >= MAX_CACHED {
            self.names.retain(|(address, _), _| self.modules.containing(*address).is_none());
        }
        self.names.insert((address, what), name.clone());
        name
    }

    fn look_up(&mut self, module: &Module, address: u64, what: Address) -> Option<Arc<str>> {
        if !self.binaries.contains_key(&module.path) {
            let opened = self.open(module);
            self.binaries.insert(module.path.clone(), opened);
        }
        let binary = self.binaries.get(&module.path)?.as_ref()?;
        let in_file = module.offset.checked_add(address - module.start)?;
        binary.name(in_file, what)
    }

    fn open(&mut self, module: &Module) -> Option<Binary> {
        if self.binaries.len() >= MAX_BINARIES {
            return None;
        }
        let problem = match Binary::open(Path::new(&module.path), &module.build_id) {
            Ok(binary) => {
                let problem = binary.problem().map(String::from);
                let Some(problem) = problem else { return Some(binary) };
                self.losses.push(self.note(&module.path, &problem));
                return Some(binary);
            }
            Err(problem) => problem,
        };
        self.losses.push(self.note(&module.path, &problem));
        None
    }

    fn note(&self, path: &str, problem: &str) -> Loss {
        let detail = format!("{}: no names for addresses in {path:?}: {problem}", self.trace);
        let advice = "merge where the program ran, with the binaries it ran, not stripped and built with -g";
        let note = Loss::new(LossKind::NotRecorded, Level::User, detail);
        Loss { severity: Severity::Note, advice, ..note }
    }

    /// The addresses that could not be named since the last call.
    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = std::mem::take(&mut self.losses);
        let homeless = std::mem::take(&mut self.homeless);
        if homeless > 0 {
            let detail = format!("{}: no names for functions outside of its mappings", self.trace);
            let advice = "call fut_note_modules after dlopen if the program may be killed";
            let note = Loss::new(LossKind::NotRecorded, Level::User, detail);
            losses.push(Loss { severity: Severity::Note, count: Some(homeless), advice, ..note });
        }
        losses
    }
}

/// `compute at lu.c:42`: the file without its folders.
fn name_with_line(name: &str, place: Option<(&str, u32)>) -> Arc<str> {
    match place {
        Some((file, line)) => {
            let file = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
            format!("{name} at {file}:{line}").into()
        }
        None => name.into(),
    }
}
