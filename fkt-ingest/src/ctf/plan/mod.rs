//! Compiled declarations: a list of steps that reads a header or fills the parameters of an event in one pass.
//!
//! A parameter is a number, a number with its name in an enumeration, or a text:
//!
//! * the fields of a structure are separate parameters, `outer.inner`; one leading `_` of a name, which LTTng adds, is
//!   removed;
//! * characters, counted or up to a NUL, are a text;
//! * up to eight numbers in an array of fixed length are a parameter each (`args0` … `args7`); other arrays are a text,
//!   `[1, 2, 3]`, `[{1, x}, {2, y}]`;
//! * every option of a variant has its own parameters, `variant.option`; those of absent options are unknown.
//!
//! A tag or a length is found by its name at compile time; at run time it is a register.

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
pub(super) use out::DiscardValues;
pub(super) use quick_header::QuickHeader;
pub(super) use run::run;
pub(super) use scope::FieldScope;

/// The number of a register; register 0 is written but never read.
pub(super) type Register = u16;

/// The register for the event's id, as set last by its header.
pub(super) const EVENT_ID: Register = 1;

/// The first register for fields.
const FIRST_REGISTER: Register = 2;

/// One step.
#[derive(Debug)]
pub(super) enum Op {
    Align(u32),
    Number(Number),
    /// A number that is the time, or its low bits.
    Clock(Number),
    Float(Float),
    Text,
    /// A counted number of characters.
    Chars {
        align: u32,
        count: Count,
    },
    List(Box<List>),
    Variant(Box<VariantPlan>),
    /// The 16 bytes that identify the trace.
    Uuid,
}

#[derive(Debug)]
pub(super) struct Number {
    shape: Shape,
    order: Order,
    /// In bits, 1 to 64.
    size: u8,
    /// 64 − size if it is signed, else 0: shifting left and right by it extends the sign.
    extend: u8,
    signed: bool,
    /// Alignment in bits, less one.
    align: u32,
    keep: Register,
    labels: Option<Arc<Labels>>,
}

/// The fastest way to read a number.
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
    /// Whether an element is a structure, written in braces.
    braces: bool,
}

#[derive(Debug)]
pub(super) struct VariantPlan {
    tag: Register,
    /// The options by tag: ranges, and the option of each.
    ranges: Labels,
    chosen: Vec<usize>,
    options: Vec<OptionPlan>,
    /// Number of parameters of all options.
    parameters: usize,
}

#[derive(Debug)]
struct OptionPlan {
    ops: Vec<Op>,
    /// Number of parameters of the options before it, and its own.
    before: usize,
    own: usize,
}

/// The state of running plans.
#[derive(Debug, Default)]
pub(super) struct State {
    registers: Vec<u64>,
    /// Time of the newest event or packet, on its clock, widened to 64 bits.
    pub(super) time: u64,
    pub(super) uuid: [u8; 16],
    /// Remaining steps. An undamaged trace needs at most a few per byte.
    pub(super) steps_left: u64,
    list: out::ListText,
}

impl State {
    pub(super) fn new(registers: usize, steps_left: u64) -> State {
        State { registers: vec![0; registers.max(FIRST_REGISTER.into())], steps_left, ..State::default() }
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

    /// Sets the low `size` bits of the time, which does not decrease, and wraps around at most once.
    #[inline]
    pub(super) fn widen(&mut self, low: u64, size: u8) {
        self.time = Widen::new(size.into(), self.time).widen(low);
    }
}

/// Why a plan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    PastEnd,
    /// The tag selects no option of its variant.
    NoOption(u64),
    TooManySteps,
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
