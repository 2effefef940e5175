//! Declarations, compiled: a list of steps that reads a header or fills the parameters of an event in one pass.
//!
//! A parameter is a number, a number with the name that its enumeration gives it, or a text:
//!
//! * the fields of a structure are parameters of their own, `outer.inner`; one `_` before a name is left out, as
//!   LTTng puts it there;
//! * characters, counted or up to a NUL, are a text;
//! * up to eight numbers in an array of fixed length are a parameter each (`args0` … `args7`); other arrays are a text,
//!   `[1, 2, 3]`, `[{1, x}, {2, y}]`;
//! * every option of a variant has parameters of its own, `variant.option`; those of the options that are not there
//!   are unknown.
//!
//! A tag or a length is found by its name when the plan is made; when it runs, it is a register.

mod compile;
mod out;
mod quick_header;
mod run;
mod scope;

use std::sync::Arc;

use sigmund_model::Widen;

use super::bits::PastEnd;
use super::metadata::{Labels, Order};

pub(super) use compile::{Budget, Compiler};
pub(super) use out::Nothing;
pub(super) use quick_header::QuickHeader;
pub(super) use run::run;
pub(super) use scope::Scope;

/// The number of a register; 0 is written and never read.
pub(super) type Register = u16;

/// Of the event's id, as its header says it last.
pub(super) const EVENT_ID: Register = 1;

/// The first that a plan may use.
const FIRST_REGISTER: Register = 2;

/// One step.
#[derive(Debug)]
pub(super) enum Op {
    Align(u32),
    Number(Number),
    /// A number that is the time, whole or its low bits.
    Clock(Number),
    Float(Float),
    Text,
    /// Characters: so many.
    Chars {
        align: u32,
        count: Count,
    },
    List(Box<List>),
    Variant(Box<VariantPlan>),
    /// The 16 bytes that name the trace.
    Uuid,
}

#[derive(Debug)]
pub(super) struct Number {
    shape: Shape,
    order: Order,
    /// In bits, 1 to 64.
    size: u8,
    /// 64 − size if it is signed, else 0: shifting there and back extends the sign.
    extend: u8,
    signed: bool,
    /// Alignment in bits, less one.
    align: u32,
    keep: Register,
    labels: Option<Arc<Labels>>,
}

/// How a number is read fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Byte,
    Little16,
    Little32,
    Little64,
    Big16,
    Big32,
    Big64,
    /// It begins or ends within a byte.
    Bits,
}

#[derive(Debug)]
pub(super) struct Float {
    is_double: bool,
    order: Order,
    align: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Fixed(u64),
    In(Register),
}

#[derive(Debug)]
pub(super) struct List {
    align: u32,
    count: Count,
    element: Vec<Op>,
    /// An element is a structure, written in braces.
    braces: bool,
}

#[derive(Debug)]
pub(super) struct VariantPlan {
    tag: Register,
    /// Which option a tag chooses: ranges, and for each its option.
    ranges: Labels,
    chosen: Vec<usize>,
    options: Vec<OptionPlan>,
    /// Of all options.
    parameters: usize,
}

#[derive(Debug)]
struct OptionPlan {
    ops: Vec<Op>,
    /// Parameters of the options before it, and its own.
    before: usize,
    own: usize,
}

/// What a running plan remembers.
#[derive(Debug, Default)]
pub(super) struct State {
    registers: Vec<u64>,
    /// Time of the newest event or packet, on its clock, widened to 64 bits.
    pub(super) time: u64,
    pub(super) uuid: [u8; 16],
    /// Steps that may still be taken. A sane trace needs at most some for each byte.
    pub(super) fuel: u64,
    list: out::ListText,
}

impl State {
    pub(super) fn new(registers: usize, fuel: u64) -> State {
        State { registers: vec![0; registers.max(FIRST_REGISTER.into())], fuel, ..State::default() }
    }

    #[inline]
    pub(super) fn get(&self, register: Register) -> u64 {
        self.registers.get(usize::from(register)).copied().unwrap_or(0)
    }

    #[inline]
    fn keep(&mut self, register: Register, value: u64) {
        if let Some(kept) = self.registers.get_mut(usize::from(register)) {
            *kept = value;
        }
    }

    /// Takes the low `size` bits of the time: it does not go back, and wraps around at most once.
    #[inline]
    pub(super) fn widen(&mut self, low: u64, size: u8) {
        self.time = Widen::new(size.into(), self.time).widen(low);
    }
}

/// Why a plan could not be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    PastEnd,
    /// The tag chooses no option of its variant.
    NoOption(u64),
    OutOfFuel,
}

impl From<PastEnd> for Stop {
    fn from(_: PastEnd) -> Stop {
        Stop::PastEnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_of_the_time_go_on_and_wrap_around() {
        let mut state = State { time: 0x1_0fff_fff0, ..State::default() };
        state.widen(0x7ff_fff8, 27);
        assert_eq!(state.time, 0x1_0fff_fff8);
        state.widen(3, 27);
        assert_eq!(state.time, 0x1_1000_0003);
        state.widen(0x1000_0001, 32);
        assert_eq!(state.time, 0x2_1000_0001);
        state.widen(5, 64);
        assert_eq!(state.time, 5);
    }
}
