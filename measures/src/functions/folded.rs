//! Folded stacks, as Brendan Gregg's `flamegraph.pl` reads them: `thread;outer;inner TICKS`, a line for each stack.

use crate::map::Map;

use super::{
    Selection,
    nesting::{Nested, Visitor, key, walk_in_turn},
};
use crate::{By, Culprit, History, Request, Span, Word, groups::Groups, groups::Owner};

/// A stack of spans, and what its innermost took itself.
#[derive(Clone, Copy, Debug)]
struct Stack {
    around: Option<u32>,
    /// The group, of a stack that is a thread and no span yet.
    group: Option<u32>,
    name: Option<Word>,
    /// Whether it is the span that is asked about, or inside of it.
    is_asked: bool,
    active: i64,
}

struct Stacks<'h> {
    selection: Selection<'h>,
    groups: Groups<'h>,
    roots: Map<Option<u32>, u32>,
    places: Map<(u32, usize), u32>,
    stacks: Vec<Stack>,
}

impl Stacks<'_> {
    fn push(&mut self, stack: Stack) -> u32 {
        self.stacks.push(stack);
        self.stacks.len() as u32 - 1
    }

    fn root(&mut self, span: &Span) -> u32 {
        let group = self.groups.number(span.thread, span.lwp);
        if let Some(root) = self.roots.get(&group) {
            return *root;
        }
        let root = self.push(Stack { around: None, group, name: None, is_asked: false, active: 0 });
        self.roots.insert(group, root);
        root
    }
}

impl Visitor for Stacks<'_> {
    fn begin(&mut self, around: Option<u32>, _: Owner, span: &Span) -> u32 {
        let around = around.unwrap_or_else(|| self.root(span));
        if let Some(stack) = self.places.get(&(around, key(span))) {
            return *stack;
        }
        let is_asked = self.stacks[around as usize].is_asked || self.selection.is_subject(span);
        let stack = Stack { around: Some(around), group: None, name: span.name, is_asked, active: 0 };
        let place = self.push(stack);
        self.places.insert((around, key(span)), place);
        place
    }

    fn end(&mut self, nested: Nested<'_>) {
        if self.selection.has(nested.span) {
            self.stacks[nested.tag as usize].active += nested.self_active.unwrap_or(0);
        }
    }
}

/// Folded stacks of spans and functions, weighted by the ticks in which each was active itself (its thread active, and in
/// none inside of it): a line for each stack that has any, sorted. The first frame is the thread's name, or its group if
/// rows are grouped otherwise. What is not known to be active is left out. With a subject, only stacks that contain it.
pub fn folded(history: &History, request: &Request) -> String {
    let request = &Request { by: Some(request.by.unwrap_or(By::Name)), ..request.clone() };
    let selection = Selection { history, request };
    let groups = Groups::new(history, request);
    let mut stacks =
        Stacks { selection, groups, roots: Map::default(), places: Map::default(), stacks: Vec::new() };
    walk_in_turn(history, request.window, &mut stacks);
    let Stacks { groups, stacks, .. } = stacks;

    let mut lines: Vec<String> = Vec::new();
    let mut frames: Vec<String> = Vec::new();
    for stack in stacks.iter().filter(|stack| stack.is_asked && stack.active > 0) {
        let mut at = Some(stack);
        frames.clear();
        while let Some(stack) = at {
            frames.push(match (stack.group, stack.name) {
                (Some(group), _) => frame(&Culprit::Group(groups.group(group).clone()).label(history)),
                (None, Some(name)) => frame(history.words.text(name)),
                (None, None) if stack.around.is_none() => "unknown".to_string(),
                (None, None) => "without a name".to_string(),
            });
            at = stack.around.map(|around| &stacks[around as usize]);
        }
        frames.reverse();
        lines.push(format!("{} {}\n", frames.join(";"), stack.active));
    }
    lines.sort_unstable();
    lines.concat()
}

/// A name without what would end a frame or a line.
fn frame(name: &str) -> String {
    let clean = |character: char| match character {
        ';' => ':',
        character if character.is_control() => ' ',
        character => character,
    };
    name.chars().map(clean).collect()
}
