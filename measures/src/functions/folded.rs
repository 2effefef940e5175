//! Folded stacks, as Brendan Gregg's `flamegraph.pl` reads them: `thread;outer;inner TICKS`, a line for each stack.

use crate::map::Map;

use super::{
    FUNCTIONS, Selection,
    nesting::{LaterSpans, Nested, Visitor, key, walk},
};
use crate::{
    Answer, By, Column, Culprit, History, Measure, Request, Slice, Span, Word,
    groups::{Groups, Owner},
    instances::SpanNames,
    sliced::Sliced,
};

/// A stack of spans, and the ticks in which its innermost span was active itself.
#[derive(Clone, Copy, Debug)]
struct Stack {
    around: Option<u32>,
    /// The group, if the stack is only a thread so far, without a span.
    group: Option<u32>,
    name: Option<Word>,
    /// Whether it is the requested span, or inside of it.
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

/// Folded stacks of spans and functions, one row for each stack with active ticks, sorted. A stack's ticks are those in
/// which its thread was active in the innermost span, and in no span inside of that. The first frame is the name of the
/// thread, or of its group if rows are grouped otherwise. Time that is not known to be active is left out. With a
/// subject, only stacks that contain it.
pub const FOLDED: Measure = Measure { computed: start, ..FUNCTIONS };

/// The active ticks of each stack so far.
struct Folded {
    request: Request,
    active: Map<String, i64>,
    open: LaterSpans,
    names: SpanNames,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    let request = Request { by: Some(request.by.unwrap_or(By::Name)), ..request.clone() };
    Box::new(Folded {
        request,
        active: Map::default(),
        open: LaterSpans::default(),
        names: SpanNames::default(),
    })
}

impl Folded {
    /// Whether a call is selected by the CPU on which it began.
    fn at_begin(&self) -> bool {
        self.request.cpus.is_some()
    }
}

impl Sliced for Folded {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        if self.request.subject.is_some() {
            self.names.add(history, slice, &self.request);
        }
        let (request, at_begin) = (&self.request, self.at_begin());
        let later = std::mem::take(&mut self.open);
        let (visitors, open) = walk(history, (slice, at_begin), &later, || Stacks {
            selection: Selection { history, request },
            groups: Groups::new(history, request),
            roots: Map::default(),
            places: Map::default(),
            stacks: Vec::new(),
        });
        self.open = open;
        for (stack, active) in visitors.iter().flat_map(|stacks| stacks.active(history)) {
            *self.active.entry(stack).or_insert(0) += active;
        }
        Ok(())
    }

    fn looks_back(&self) -> bool {
        self.at_begin() && !self.open.is_empty()
    }

    fn finish(mut self: Box<Self>, history: &History) -> Result<Answer, String> {
        std::mem::take(&mut self.names).check(history, &self.request)?;
        let mut answer = Answer::new(vec![
            Column::text(
                "stack",
                "The thread's name or group, and the spans and functions, the outermost first.",
            ),
            Column::length("self_active_tick", "The time in which the innermost was active itself."),
        ]);
        let mut active: Vec<(String, i64)> = self.active.into_iter().collect();
        active.sort_unstable();
        active.into_iter().for_each(|(stack, active)| answer.push(vec![stack.into(), active.into()]));
        Ok(answer)
    }
}

impl Stacks<'_> {
    /// The text of each stack that was active, `thread;outer;inner`, and its active ticks.
    fn active(&self, history: &History) -> impl Iterator<Item = (String, i64)> {
        let active = self.stacks.iter().filter(|stack| stack.is_asked && stack.active > 0);
        active.map(|stack| (self.text(history, stack), stack.active))
    }

    fn text(&self, history: &History, stack: &Stack) -> String {
        let mut frames: Vec<String> = Vec::new();
        let mut at = Some(stack);
        while let Some(stack) = at {
            frames.push(match (stack.group, stack.name) {
                (Some(group), _) => frame(&Culprit::Group(self.groups.group(group).clone()).label(history)),
                (None, Some(name)) => frame(history.words.text(name)),
                (None, None) if stack.around.is_none() => "unknown".to_string(),
                (None, None) => "without a name".to_string(),
            });
            at = stack.around.map(|around| &self.stacks[around as usize]);
        }
        frames.reverse();
        frames.join(";")
    }
}

/// Replaces the characters of a name that would end a frame or a line.
fn frame(name: &str) -> String {
    let clean = |character: char| match character {
        ';' => ':',
        character if character.is_control() => ' ',
        character => character,
    };
    name.chars().map(clean).collect()
}
