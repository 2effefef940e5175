//! Whom culprits are the same as, if they are grouped; and the texts of these.

use std::sync::Arc;

use super::{Actor, Blame};
use crate::{By, History, map::Map};

/// A culprit, or a group of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    /// A thread or LWP with a row of its own: there may be millions, so its text is made when it is asked for.
    Who(Actor),
    /// Others, by the number of their text.
    Text(u32),
}

/// The texts of culprits, numbered as they occur.
pub(super) struct Labels<'h> {
    history: &'h History,
    by: By,
    of_blames: Map<Blame, u32>,
    /// By the address of the name of a thread, where rows are grouped by names: threads of one name share its text.
    of_names: Map<usize, u32>,
    of_texts: Map<Option<Arc<str>>, u32>,
    texts: Vec<Option<Arc<str>>>,
}

impl<'h> Labels<'h> {
    pub(super) fn new(history: &'h History, by: By) -> Labels<'h> {
        let (of_blames, of_names, of_texts) = Default::default();
        Labels { history, by, of_blames, of_names, of_texts, texts: Vec::new() }
    }

    pub(super) fn of(&mut self, blame: Blame) -> Label {
        match blame {
            Blame::Who(actor) if matches!(self.by, By::Thread | By::Lwp) => Label::Who(actor),
            _ => Label::Text(self.number(blame)),
        }
    }

    fn number(&mut self, blame: Blame) -> u32 {
        let name = self.name(blame).map(|name| name.as_ptr().addr());
        if let Some(number) = name.and_then(|name| self.of_names.get(&name)) {
            return *number;
        }
        if let Some(number) = self.of_blames.get(&blame) {
            return *number;
        }
        let number = self.number_of_text(blame.label(self.history, self.by).map(Arc::from));
        match name {
            Some(name) => self.of_names.insert(name, number),
            None => self.of_blames.insert(blame, number),
        };
        number
    }

    /// `None` for itself.
    pub(super) fn text(&self, label: Label) -> Option<String> {
        match label {
            Label::Who(actor) => Blame::Who(actor).label(self.history, self.by),
            Label::Text(number) => self.texts[number as usize].as_deref().map(str::to_string),
        }
    }

    /// What the text depends on, and on nothing else.
    fn name(&self, blame: Blame) -> Option<&'h str> {
        let names = &self.history.names;
        match blame {
            _ if !matches!(self.by, By::Name | By::Pattern) => None,
            Blame::Who(Actor::Thread(thread)) => names.threads.get(thread)?.name,
            Blame::Who(Actor::Lwp(lwp)) => names.lwps.get(lwp)?.name,
            _ => None,
        }
    }

    fn number_of_text(&mut self, text: Option<Arc<str>>) -> u32 {
        *self.of_texts.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() as u32 - 1
        })
    }
}
