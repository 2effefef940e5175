//! Event classes: the fields of an event, for each combination of forms that its parameters have.
//!
//! Most declared events have one class. A parameter that does not match its field (a text where a number is declared, a
//! number that could not be read) adds another class of the same name, with the actual fields.

use std::collections::HashMap;

use sigmund_model::{EventType, FieldType, Level, Params};

use super::form::{self, Form, TsdlType};
use super::names;
use super::packet_stream::StreamClass;
use super::usual_names::{self, UsualName};

/// Maximum number of classes of one declared event: each combination of forms is a class. Events with further
/// combinations are written as texts.
const MAX_CLASSES: usize = 64;
/// Maximum number of system calls with separate event classes.
const MAX_SYSTEM_CALLS: usize = 2048;
/// Maximum size of the labels of numbers that are kept for the metadata, in bytes.
const MAX_LABEL_BYTES: usize = 4 << 20;
/// Memory of a label without its text, in bytes.
const LABEL_LEN: usize = 64;

/// The event classes of a trace, collected while its events are written.
#[derive(Debug, Default)]
pub(super) struct EventClasses {
    kinds: Vec<EventShape>,
    classes: Vec<EventClass>,
    forms: Vec<Form>,
    label_bytes: usize,
    pub(super) left_out: ClassesLeftOut,
}

/// Counts of what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassesLeftOut {
    /// Names of numbers.
    pub(super) labels: u64,
    /// Events whose parameters are all written as texts.
    pub(super) as_text: u64,
}

/// The name, fields, labels and classes of a declared event, or of the event of one system call.
#[derive(Debug)]
struct EventShape {
    name: String,
    fields: Vec<(String, FieldType)>,
    usual: Option<&'static UsualName>,
    /// The prefix of the event's name, and the parameter that is the system call.
    system_call: Option<(&'static str, usize)>,
    /// Index of the field `prev_state` of `sched_switch`.
    prev_state: Option<usize>,
    /// The forms and the class of the previous event.
    latest: Option<(Vec<Form>, u32)>,
    by_forms: HashMap<Vec<Form>, u32>,
    /// Names of numbers, for each field; `None` for an event whose numbers must not be enumerations.
    labels: Option<Vec<HashMap<i64, Box<str>>>>,
    /// The index in `kinds` of each system call.
    calls: HashMap<Box<str>, usize>,
}

#[derive(Debug)]
struct EventClass {
    kind: usize,
    forms: Vec<Form>,
    /// The streams it is declared for.
    streams: [bool; 3],
}

/// A class as the metadata declares it.
#[derive(Debug)]
pub(super) struct Declaration<'c> {
    pub(super) id: usize,
    pub(super) name: String,
    pub(super) fields: Vec<DeclaredField<'c>>,
}

/// A field as the metadata declares it.
#[derive(Debug)]
pub(super) struct DeclaredField<'c> {
    pub(super) identifier: String,
    pub(super) ty: TsdlType,
    /// Names of its numbers.
    pub(super) labels: Vec<(i64, &'c str)>,
}

impl EventClasses {
    pub(super) fn new(types: &[EventType]) -> EventClasses {
        EventClasses { kinds: types.iter().map(EventShape::new).collect(), ..EventClasses::default() }
    }

    /// Writes the parameters of an event, and returns the number of its class.
    #[inline]
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        kind: usize,
        stream: StreamClass,
        params: &Params,
    ) -> u32 {
        let kind = self.system_call(kind, params);
        let start = out.len();
        self.write_params(out, kind, params);
        let id = match &self.kinds[kind].latest {
            Some((forms, id)) if *forms == self.forms => *id,
            _ => self.find(out, start, kind, params),
        };
        self.classes[id as usize].streams[stream as usize] = true;
        id
    }

    fn write_params(&mut self, out: &mut Vec<u8>, at: usize, params: &Params) {
        let kind = &mut self.kinds[at];
        self.forms.clear();
        let mut recorded_state = None;
        for (index, (_, ty)) in kind.fields.iter().enumerate() {
            let param = params.get(index);
            let start = out.len();
            let form = form::write(out, *ty, param);
            self.forms.push(form);
            if kind.prev_state == Some(index) && form.is_number() {
                recorded_state = param.and_then(|param| param.number);
                // The lowest byte is the state; the others encode how the task left the CPU.
                out[start + 1..].fill(0);
            }
            let label = param.and_then(|param| param.number.zip(param.text));
            if let (Some((number, text)), Some(labels)) = (label, &mut kind.labels) {
                let room = MAX_LABEL_BYTES - self.label_bytes;
                match add_label(&mut labels[index], *ty, number, text, room) {
                    Some(bytes) => self.label_bytes += bytes,
                    None => self.left_out.labels += 1,
                }
            }
        }
        out.extend(recorded_state.map(i64::to_le_bytes).iter().flatten());
    }

    /// The class of the forms just written; creates it if it is new.
    fn find(&mut self, out: &mut Vec<u8>, start: usize, kind: usize, params: &Params) -> u32 {
        let known = self.kinds[kind].by_forms.get(self.forms.as_slice()).copied();
        let id = known.unwrap_or_else(|| self.new_class(out, start, kind, params));
        match &mut self.kinds[kind].latest {
            Some((forms, latest)) => {
                forms.clone_from(&self.forms);
                *latest = id;
            }
            latest @ None => *latest = Some((self.forms.clone(), id)),
        }
        id
    }

    /// Creates a class of these forms; if there are too many classes, one with texts only.
    #[cold]
    fn new_class(&mut self, out: &mut Vec<u8>, start: usize, at: usize, params: &Params) -> u32 {
        let kind = &mut self.kinds[at];
        if kind.by_forms.len() >= MAX_CLASSES {
            out.truncate(start);
            self.left_out.as_text += 1;
            for (index, (form, (_, declared))) in self.forms.iter_mut().zip(&kind.fields).enumerate() {
                *form = if *declared == FieldType::Text { Form::Declared } else { Form::Text };
                form::write_as_text(out, params.get(index));
            }
        }
        let next = self.classes.len() as u32;
        let id = *kind.by_forms.entry(self.forms.clone()).or_insert(next);
        if id == next {
            self.classes.push(EventClass { kind: at, forms: self.forms.clone(), streams: [false; 3] });
        }
        id
    }

    /// The shape of the event. For a system call, the shape of the particular call.
    #[inline]
    fn system_call(&mut self, kind: usize, params: &Params) -> usize {
        let Some((prefix, index)) = self.kinds[kind].system_call else { return kind };
        let name = params.get(index).and_then(|id| id.text).unwrap_or("unknown");
        match self.kinds[kind].calls.get(name) {
            Some(call) => *call,
            None => self.new_call(kind, prefix, name),
        }
    }

    #[cold]
    fn new_call(&mut self, kind: usize, prefix: &str, name: &str) -> usize {
        let next = self.kinds.len();
        let of = &mut self.kinds[kind];
        let name = if of.calls.len() < MAX_SYSTEM_CALLS { name } else { "unknown" };
        let call = *of.calls.entry(name.into()).or_insert(next);
        if call == next {
            let fields = of.fields.clone();
            self.kinds.push(EventShape { fields, ..EventShape::named(format!("{prefix}{name}")) });
        }
        call
    }

    /// The classes of the events in streams of this class.
    pub(super) fn declarations(&self, stream: StreamClass) -> impl Iterator<Item = Declaration<'_>> {
        let of_stream = move |(_, class): &(usize, &EventClass)| class.streams[stream as usize];
        self.classes.iter().enumerate().filter(of_stream).map(|(id, class)| self.declaration(id, class))
    }

    fn declaration(&self, id: usize, class: &EventClass) -> Declaration<'_> {
        let kind = &self.kinds[class.kind];
        let types = kind.fields.iter().zip(&class.forms).map(|((_, ty), form)| form.ty(*ty));
        let shown = kind.fields.iter().map(|(name, _)| kind.usual.map_or(&**name, |usual| usual.field(name)));
        let shown: Vec<(&str, Option<TsdlType>)> = shown.zip(types).collect();
        let name = kind.usual.map_or_else(|| kind.name.clone(), |usual| usual.name(&shown));
        let identifiers = names::identifiers(shown.iter().map(|(name, _)| *name));
        let mut fields = Vec::new();
        for (index, (identifier, (_, ty))) in identifiers.into_iter().zip(&shown).enumerate() {
            let labels = kind.labels.as_ref().map_or(Vec::new(), |labels| sorted(&labels[index]));
            fields.extend(ty.map(|ty| DeclaredField { identifier, ty, labels }));
        }
        let has_recorded_state = kind.prev_state.is_some_and(|at| class.forms[at].is_number());
        if has_recorded_state {
            let identifier = "_prev_state_recorded".into();
            fields.push(DeclaredField { identifier, ty: form::I64, labels: Vec::new() });
        }
        Declaration { id, name, fields }
    }
}

fn sorted(labels: &HashMap<i64, Box<str>>) -> Vec<(i64, &str)> {
    let mut labels: Vec<(i64, &str)> = labels.iter().map(|(number, text)| (*number, &**text)).collect();
    labels.sort_unstable();
    labels
}

/// Keeps the name of a number. Returns the added memory in bytes, or `None` if the name cannot be kept: the number has
/// another name, or memory is exhausted.
#[inline]
fn add_label(
    labels: &mut HashMap<i64, Box<str>>,
    ty: FieldType,
    number: i64,
    text: &str,
    room: usize,
) -> Option<usize> {
    if let Some(known) = labels.get(&number) {
        return (**known == *text).then_some(0);
    }
    let bytes = text.len() + LABEL_LEN;
    // Only integers have labels, and Trace Compass reads only labels of at most 63 bits.
    let is_signed = matches!(ty, FieldType::I64 | FieldType::Text);
    if ty == FieldType::F64 || bytes > room || number < 0 && !is_signed {
        return None;
    }
    labels.insert(number, text.into());
    Some(bytes)
}

impl EventShape {
    fn new(ty: &EventType) -> EventShape {
        let mut kind = EventShape::named(ty.name.clone());
        kind.fields = ty.fields.iter().map(|field| (field.name.clone(), field.ty)).collect();
        if ty.level == Level::User {
            kind.name = usual_names::user_event(&ty.name);
        } else {
            kind.usual = UsualName::of(&ty.name);
            kind.system_call = usual_names::raw_syscall(&ty.name).zip(ty.field("id"));
            let is_number = |at: &usize| ty.fields[*at].ty != FieldType::Text;
            kind.prev_state = ty.field("prev_state").filter(|_| ty.name == "sched_switch").filter(is_number);
            kind.name = usual_names::syscall(&ty.name).unwrap_or(kind.name);
        }
        if kind.usual.is_none() {
            kind.labels = Some(vec![HashMap::new(); kind.fields.len()]);
        }
        kind
    }

    fn named(name: String) -> EventShape {
        EventShape {
            name,
            fields: Vec::new(),
            usual: None,
            system_call: None,
            prev_state: None,
            latest: None,
            by_forms: HashMap::new(),
            labels: None,
            calls: HashMap::new(),
        }
    }
}
