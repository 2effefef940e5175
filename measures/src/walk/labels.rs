//! The labels of culprits. Culprits that are grouped share a label.

use std::{cmp::Ordering, sync::Arc};

use super::{Actor, Blame};
use crate::{By, History, map::Map};

/// A culprit, or a group of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Label {
    /// A culprit that is not grouped. There may be millions of these, so the text is made only when it is needed.
    One(Blame),
    /// A group, by the number of its text.
    Group(u32),
}

/// The groups of culprits, numbered as they occur.
#[derive(Default)]
pub(crate) struct Labels {
    of_blames: Map<Blame, u32>,
    /// By the address of the thread's name, if rows are grouped by names: threads with the same name share a text.
    of_names: Map<usize, u32>,
    of_texts: Map<Option<Arc<str>>, u32>,
    texts: Vec<Option<Arc<str>>>,
}

impl Labels {
    /// The label of a culprit in an answer with this grouping. All histories have to be of the same trace.
    pub(super) fn of(&mut self, history: &History, by: By, blame: Blame) -> Label {
        if matches!(by, By::Thread | By::Lwp) {
            return Label::One(blame);
        }
        let name = name(history, by, blame).map(|name| name.as_ptr().addr());
        let known = match name {
            Some(name) => self.of_names.get(&name),
            None => self.of_blames.get(&blame),
        };
        if let Some(number) = known {
            return Label::Group(*number);
        }
        let number = self.number_of_text(blame.label(history, by).map(Arc::from));
        match name {
            Some(name) => self.of_names.insert(name, number),
            None => self.of_blames.insert(blame, number),
        };
        Label::Group(number)
    }

    /// The text of a label; `None` for the actor itself.
    pub(super) fn text(&self, history: &History, label: Label) -> Option<String> {
        match label {
            Label::One(blame) => blame.label(history, By::Thread),
            Label::Group(number) => self.texts[number as usize].as_deref().map(str::to_string),
        }
    }

    /// Which of two labels comes first if nothing else differs: first threads by number, then LWPs, then others by
    /// text.
    pub(super) fn order(&self, history: &History, a: Label, b: Label) -> Ordering {
        match (a, b) {
            (Label::One(Blame::Who(a)), Label::One(Blame::Who(b))) => a.cmp(&b),
            (Label::One(Blame::Who(_)), _) => Ordering::Less,
            (_, Label::One(Blame::Who(_))) => Ordering::Greater,
            (Label::Group(a), Label::Group(b)) => self.texts[a as usize].cmp(&self.texts[b as usize]),
            _ => self.text(history, a).cmp(&self.text(history, b)),
        }
    }

    fn number_of_text(&mut self, text: Option<Arc<str>>) -> u32 {
        *self.of_texts.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() as u32 - 1
        })
    }
}

/// The name that alone determines the text of a culprit, if there is one.
fn name(history: &History, by: By, blame: Blame) -> Option<&str> {
    match blame {
        _ if !matches!(by, By::Name | By::Pattern) => None,
        Blame::Who(Actor::Thread(thread)) => history.names.threads.get(thread)?.name,
        Blame::Who(Actor::Lwp(lwp)) => history.names.lwps.get(lwp)?.name,
        _ => None,
    }
}
