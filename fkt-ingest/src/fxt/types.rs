//! The event types of a file: which codes occur, the declaration of each, and how its arguments are read.
//!
//! The file has no declarations, so all records are read once when it is opened: some 13 ns a record (`fxt_speed` under
//! perf).

use std::collections::HashMap;

use sigmund_model::vocabulary::{KnownEvent, Meaning};
use sigmund_model::{EventType, Field, FieldType, Level};

use super::codes::{self, KernelEntry};
use super::records::{FxtRecord, UNSHIFTED_LIMIT};
use crate::event_names::{EventNames, NamedEvent};

/// Codes beyond this number are counted as one: programs have some hundreds.
const MAX_CODES: usize = 4096;

/// Number of undeclared arguments that become numbers; the others are one text of hexadecimal words.
const MAX_NUMBERS: usize = 32;

/// The types of unshifted codes come first, and then the one for all codes beyond [`MAX_CODES`].
const OTHER: usize = KernelEntry::NAMES.len();

/// Codes up to this are found without hashing.
const DIRECT: usize = 1 << 16;

const NOT_SEEN: u16 = u16::MAX;

/// The codes that occur, with the longest record of each.
#[derive(Debug)]
pub(super) struct CodesSeen {
    /// By code, for kernel and user records; empty until the first one is seen.
    direct: [Vec<u16>; 2],
    others: HashMap<(bool, u64), u16>,
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    kernel: bool,
    code: u64,
    max_args: u16,
    count: u64,
}

impl CodesSeen {
    pub(super) fn new() -> CodesSeen {
        let empty = Seen { kernel: true, code: 0, max_args: 0, count: 0 };
        let others = HashMap::new();
        CodesSeen { direct: [Vec::new(), Vec::new()], others, seen: vec![empty; OTHER + 1] }
    }

    pub(super) fn add(&mut self, record: &FxtRecord) {
        let index = match self.index(record) {
            Some(index) => index,
            None => self.add_code(record.kernel, record.code),
        };
        let seen = &mut self.seen[index];
        seen.count += 1;
        seen.max_args = seen.max_args.max(record.args.count);
        if index == OTHER {
            seen.kernel = record.kernel;
        }
    }

    #[cold]
    fn add_code(&mut self, kernel: bool, code: u64) -> usize {
        if self.seen.len() >= MAX_CODES {
            return OTHER;
        }
        let index = self.seen.len();
        self.seen.push(Seen { kernel, code, max_args: 0, count: 0 });
        let direct = &mut self.direct[usize::from(kernel)];
        if code < DIRECT as u64 {
            direct.resize(DIRECT, NOT_SEEN);
            direct[code as usize] = index as u16;
        } else {
            self.others.insert((kernel, code), index as u16);
        }
        index
    }

    #[inline]
    fn index(&self, record: &FxtRecord) -> Option<usize> {
        if record.kernel && record.code < UNSHIFTED_LIMIT {
            return Some(KernelEntry::of(record.code).map_or(OTHER, |entry| entry.split().0));
        }
        let index = match self.direct[usize::from(record.kernel)].get(record.code as usize) {
            Some(index) => *index,
            None if record.code < DIRECT as u64 => NOT_SEEN,
            None => self.others.get(&(record.kernel, record.code)).copied().unwrap_or(NOT_SEEN),
        };
        (index != NOT_SEEN).then_some(usize::from(index))
    }
}

/// The effect of an event, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    KernelEntry,
    KernelReturn,
    KernelSwitch,
    KernelFork,
    NewLwp,
    UserSwitch,
    ThreadBirth,
}

/// How one field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentReader {
    /// The number of an unshifted code.
    KernelEntry,
    Number {
        index: u8,
        signed: bool,
    },
    /// An address of a function, which is named.
    Function(u8),
    /// All arguments from this one on, as the bytes of a text.
    Text(u8),
    /// The same, as hexadecimal words.
    Words(u8),
    /// The code of an event beyond [`MAX_CODES`].
    Code,
}

/// How the events of one code are read.
#[derive(Clone, Debug)]
pub(super) struct FxtDecoder {
    pub(super) plans: Vec<ArgumentReader>,
    pub(super) action: Action,
    /// The argument that is the LWP.
    pub(super) lwp: Option<u8>,
}

/// All types of a file, and how they are read.
#[derive(Debug)]
pub(super) struct FxtTypes {
    pub(super) declared: Vec<EventType>,
    decoders: Vec<FxtDecoder>,
    codes: CodesSeen,
    /// Index in `declared` by index in `codes`.
    kinds: Vec<u32>,
}

impl FxtTypes {
    pub(super) fn new(codes: CodesSeen, names: &EventNames) -> FxtTypes {
        let mut order: Vec<usize> = (0..codes.seen.len()).filter(|i| codes.seen[*i].count > 0).collect();
        order.sort_by_key(|i| (*i > OTHER, codes.seen[*i].kernel, codes.seen[*i].code));
        let (mut declared, mut decoders) = (Vec::new(), Vec::new());
        let mut kinds = vec![0; codes.seen.len()];
        for index in order {
            kinds[index] = declared.len() as u32;
            let (event_type, decoder) = declare(index, &codes.seen[index], names);
            declared.push(event_type);
            decoders.push(decoder);
        }
        FxtTypes { declared, decoders, codes, kinds }
    }

    /// The index of the event's type, and how it is read.
    #[inline]
    pub(super) fn of(&self, record: &FxtRecord) -> (u32, &FxtDecoder) {
        let kind = self.kinds[self.codes.index(record).unwrap_or(OTHER)];
        (kind, &self.decoders[kind as usize])
    }

    /// How the arguments of events of this type are read.
    #[inline]
    pub(super) fn plans(&self, kind: u32) -> &[ArgumentReader] {
        &self.decoders[kind as usize].plans
    }

    /// Events of codes beyond [`MAX_CODES`].
    pub(super) fn beyond(&self) -> u64 {
        self.codes.seen[OTHER].count
    }
}

fn declare(index: usize, seen: &Seen, names: &EventNames) -> (EventType, FxtDecoder) {
    let level = if seen.kernel { Level::Kern } else { Level::User };
    if let Some((name, field)) = KernelEntry::NAMES.get(index) {
        let field = Field { name: (*field).to_owned(), ty: FieldType::U64 };
        let decoder =
            FxtDecoder { plans: vec![ArgumentReader::KernelEntry], action: Action::KernelEntry, lwp: None };
        return (event_type(level, None, (*name).to_owned(), vec![field]), decoder);
    }
    if index == OTHER {
        let fields = vec![number_field("code"), Field { name: "words".to_owned(), ty: FieldType::Text }];
        let decoder = FxtDecoder {
            plans: vec![ArgumentReader::Code, ArgumentReader::Words(0)],
            action: Action::None,
            lwp: None,
        };
        return (event_type(level, None, "unknown".to_owned(), fields), decoder);
    }
    let known = codes::known(seen.kernel, seen.code);
    let given = names.get(level, seen.code);
    let name = match (given, &known) {
        (Some(NamedEvent { name, .. }), _) => name.clone(),
        (None, Some((name, _))) => (*name).to_owned(),
        (None, None) => format!("code_{:#x}", seen.code),
    };
    let mut fields = given.and_then(|g| g.fields.clone()).or(known.map(|(_, f)| f)).unwrap_or_default();
    let plans = plan(&mut fields, usize::from(seen.max_args));
    let lwp = given.and_then(|g| g.lwp_field).and_then(|field| u8::try_from(field).ok());
    let decoder = FxtDecoder { plans, action: action(level, seen.code), lwp };
    (event_type(level, u32::try_from(seen.code).ok(), name, fields), decoder)
}

/// A plan for each field. Arguments without a declared field get one each, and so do those after a text.
fn plan(fields: &mut Vec<Field>, max_args: usize) -> Vec<ArgumentReader> {
    let mut plans: Vec<ArgumentReader> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let index = index.min(255) as u8;
        plans.push(match field.ty {
            FieldType::Text => ArgumentReader::Text(index),
            FieldType::Pointer => ArgumentReader::Function(index),
            FieldType::I64 => ArgumentReader::Number { index, signed: true },
            _ => ArgumentReader::Number { index, signed: false },
        });
    }
    if !fields.iter().any(|field| field.ty == FieldType::Text) {
        for index in fields.len()..max_args.min(MAX_NUMBERS) {
            fields.push(number_field(&format!("arg{index}")));
            plans.push(ArgumentReader::Number { index: index as u8, signed: false });
        }
        if max_args > fields.len() {
            plans.push(ArgumentReader::Words(fields.len() as u8));
            fields.push(Field { name: "more".to_owned(), ty: FieldType::Text });
        }
    }
    plans
}

fn number_field(name: &str) -> Field {
    Field { name: name.to_owned(), ty: FieldType::U64 }
}

/// The action by libfxt's name for the code, even if the user has given it another name. Two codes have meanings that
/// no other source has: the end of the innermost entry to the kernel, and PM2's own numbers of LWPs.
fn action(level: Level, code: u64) -> Action {
    match (level, code) {
        (Level::Kern, codes::FKT_RET_FROM_SYS_CALL) => return Action::KernelReturn,
        (Level::User, codes::FUT_NEW_LWP) => return Action::NewLwp,
        _ => {}
    }
    let known = codes::known(level == Level::Kern, code)
        .and_then(|(name, fields)| KnownEvent::of(&event_type(level, None, name.to_owned(), fields)));
    match known.map(|known| known.meaning()) {
        Some(Meaning::Switch) => Action::KernelSwitch,
        Some(Meaning::LwpNew) => Action::KernelFork,
        Some(Meaning::UserSwitch) => Action::UserSwitch,
        Some(Meaning::ThreadNew) => Action::ThreadBirth,
        _ => Action::None,
    }
}

fn event_type(level: Level, code: Option<u32>, name: String, fields: Vec<Field>) -> EventType {
    EventType { level, code, name, key: 0, fields, format: String::new() }
}
