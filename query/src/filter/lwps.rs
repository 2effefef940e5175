//! The LWPs that a filter selects. Several LWPs may have had the same number, one after the other. The filter may
//! select only some of them.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::logical_expr::{Expr, ident, lit};
use sigmund_model::{Lwp, Pid};
use sigmund_sql::{LwpNames, NamedLwp, SuperTrace};

use super::{LwpRef, Reference, number_in, reference::fits};
use crate::{Error, Filter};

/// LWPs by their numbers.
#[derive(Debug, Default)]
pub struct SelectedLwps {
    /// Numbers for which every LWP with this number is selected.
    whole: BTreeSet<Lwp>,
    /// Numbers that another LWP had which is not selected. For these: the lifetimes of the selected LWPs.
    parts: BTreeMap<Lwp, Vec<Life>>,
}

/// From the first tick to the last, if the LWP ended. If the next LWP with the same number begins at the last tick, the
/// life ends one tick before.
type Life = (i64, Option<i64>);

/// The number of tids in a note.
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

    /// A note about the numbers that other LWPs had too, for answers that distinguish LWPs only by number.
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
    /// The LWPs that the filter selects by its LWPs and processes. With both, an LWP has to match both. `None` if the
    /// filter names neither.
    ///
    /// # Errors
    /// When the filter names LWPs or processes and the LWPs of the trace cannot be read.
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
            // Also numbers that are in no table of LWPs, for example that of the idle task.
            whole.extend(named.numbers.iter().filter(|lwp| !parts.contains_key(lwp)));
        }
        Ok(Some(SelectedLwps { whole, parts }))
    }
}

/// The LWPs that a list names. An empty list names all.
struct Named<'r> {
    is_all: bool,
    numbers: BTreeSet<Lwp>,
    names: BTreeSet<&'r str>,
    /// Names that no LWP has exactly: these are patterns.
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
