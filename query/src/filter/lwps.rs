//! The LWPs that a filter selects. A number may be of several LWPs, one after the other, of which only some are selected.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::logical_expr::{Expr, ident, lit};
use sigmund_model::{Lwp, Pid};
use sigmund_sql::{LwpNames, NamedLwp, SuperTrace};

use super::{LwpRef, Reference, number_in, reference::fits};
use crate::{Error, Filter};

/// LWPs by their numbers.
#[derive(Debug, Default)]
pub struct SelectedLwps {
    /// Numbers of which every LWP is selected.
    whole: BTreeSet<Lwp>,
    /// The lives of those that are selected, where another LWP, which is not, had the same number.
    parts: BTreeMap<Lwp, Vec<Life>>,
}

/// From its first tick to its last, if it ended. The last is the one before the first of the next LWP, if that has the same.
type Life = (i64, Option<i64>);

/// So many numbers are in a note.
const MOST_NAMED: usize = 4;

impl SelectedLwps {
    /// Their numbers.
    pub fn numbers(&self) -> BTreeSet<Lwp> {
        self.whole.iter().chain(self.parts.keys()).copied().collect()
    }

    /// The condition on the columns `lwp` and `ts_tick`.
    pub(crate) fn condition(&self) -> Expr {
        let during = |(from, to): &Life| {
            let from = ident("ts_tick").gt_eq(lit(*from));
            to.map_or(from.clone(), |to| from.and(ident("ts_tick").lt_eq(lit(to))))
        };
        let parts = self.parts.iter().filter_map(|(lwp, lives)| {
            let lives = lives.iter().map(during).reduce(Expr::or)?;
            Some(ident("lwp").eq(lit(i64::from(lwp.0))).and(lives))
        });
        let whole = number_in("lwp", self.whole.iter().map(|lwp| i64::from(lwp.0)));
        parts.fold(whole, Expr::or)
    }

    /// Says of which numbers other LWPs are counted, too, where only numbers are told apart.
    pub fn note(&self) -> Option<String> {
        let first: Vec<String> = self.parts.keys().take(MOST_NAMED).map(ToString::to_string).collect();
        let more = if self.parts.len() > MOST_NAMED { ", ..." } else { "" };
        (!first.is_empty()).then(|| {
            let first = first.join(", ");
            format!(
                "Other LWPs had the same tids earlier or later, and are counted with them: {first}{more}."
            )
        })
    }
}

impl Filter {
    /// The LWPs that the filter names, or that are of a process that it names; if it names both, those that are both. `None` if
    /// it names neither.
    ///
    /// # Errors
    /// When the filter names some and those of the trace cannot be read.
    pub fn selected_lwps(&self, trace: &SuperTrace) -> Result<Option<SelectedLwps>, Error> {
        let processes = self.process_numbers(trace)?;
        if self.lwps.is_empty() && processes.is_none() {
            return Ok(None);
        }
        let all = trace.lwps()?;
        let named = Named::of(&self.lwps, all);
        let begins: BTreeSet<(Lwp, i64)> = all.iter().map(|lwp| (lwp.lwp, lwp.from)).collect();
        let last = |lwp: &NamedLwp| {
            lwp.to.map(|to| if begins.contains(&(lwp.lwp, to)) { to.saturating_sub(1) } else { to })
        };
        let (mut selected, mut others) = (BTreeMap::<Lwp, Vec<Life>>::new(), BTreeSet::new());
        for lwp in all.iter() {
            let is_of = |processes: &BTreeSet<Pid>| lwp.pid.is_some_and(|pid| processes.contains(&pid));
            if named.has(lwp) && processes.as_ref().is_none_or(is_of) {
                selected.entry(lwp.lwp).or_default().push((lwp.from, last(lwp)));
            } else {
                others.insert(lwp.lwp);
            }
        }
        let (parts, whole): (BTreeMap<_, _>, BTreeMap<_, _>) =
            selected.into_iter().partition(|(lwp, _)| others.contains(lwp));
        let mut whole: BTreeSet<Lwp> = whole.into_keys().collect();
        if processes.is_none() {
            // Also those that are in no table of LWPs, as the idle task.
            whole.extend(named.numbers.iter().filter(|lwp| !parts.contains_key(lwp)));
        }
        Ok(Some(SelectedLwps { whole, parts }))
    }
}

/// What a list of LWPs names; an empty one names all.
struct Named<'r> {
    is_all: bool,
    numbers: BTreeSet<Lwp>,
    names: BTreeSet<&'r str>,
    /// Names that no LWP has exactly.
    patterns: Vec<&'r str>,
}

impl<'r> Named<'r> {
    fn of(references: &'r [LwpRef], all: &LwpNames) -> Named<'r> {
        let mut named = Named {
            is_all: references.is_empty(),
            numbers: BTreeSet::new(),
            names: BTreeSet::new(),
            patterns: Vec::new(),
        };
        for reference in references {
            match reference {
                Reference::Number(lwp) => drop(named.numbers.insert(*lwp)),
                Reference::Name(name) if all.iter().any(|lwp| lwp.name.as_ref() == Some(name)) => {
                    named.names.insert(name);
                }
                Reference::Name(name) => named.patterns.push(name),
            }
        }
        named
    }

    fn has(&self, lwp: &NamedLwp) -> bool {
        let has_name =
            |name: &str| self.names.contains(name) || self.patterns.iter().any(|pattern| fits(pattern, name));
        self.is_all || self.numbers.contains(&lwp.lwp) || lwp.name.as_deref().is_some_and(has_name)
    }
}
