//! Texts of many culprits as small numbers: few of them differ if they are grouped.

use std::sync::Arc;

use super::{Actor, Blame};
use crate::{By, History, map::Map};

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

    pub(super) fn number(&mut self, blame: Blame) -> u32 {
        if let Some(number) = self.of_blames.get(&blame) {
            return *number;
        }
        let name = self.name(blame).map(|name| name.as_ptr().addr());
        let number = match name.and_then(|name| self.of_names.get(&name)) {
            Some(number) => *number,
            None => self.number_of_text(blame.label(self.history, self.by).map(Arc::from)),
        };
        if let Some(name) = name {
            self.of_names.insert(name, number);
        }
        self.of_blames.insert(blame, number);
        number
    }

    pub(super) fn text(&self, number: u32) -> Option<&str> {
        self.texts[number as usize].as_deref()
    }

    /// What the text depends on, and on nothing else.
    fn name(&self, blame: Blame) -> Option<&'h Arc<str>> {
        let names = &self.history.names;
        match blame {
            _ if !matches!(self.by, By::Name | By::Pattern) => None,
            Blame::Who(Actor::Thread(thread)) => names.threads.get(&thread)?.name.as_ref(),
            Blame::Who(Actor::Lwp(lwp)) => names.lwps.get(&lwp)?.name.as_ref(),
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
