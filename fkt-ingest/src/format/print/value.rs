//! Evaluates expressions for one record.

use std::borrow::Cow;
use std::fmt::Write;

use super::expr::{Expr, Unary};
use super::field_location::{FieldLocation, LocationKind};
use super::pointer::bit_list;
use super::types::CType;
use crate::format::machine::Machine;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// Its bits, and whether its type is unsigned with 64 bits; for smaller types the value alone is sufficient.
    Number(i64, bool),
    Text(Cow<'a, str>),
    /// An array, a text in the record, or an address: the bytes from there on.
    Bytes {
        bytes: &'a [u8],
        element: CType,
    },
    /// Bits to format as a mask.
    Bits(&'a [u8]),
}

/// A number as C computes it.
type Num = (i64, bool);

/// The context of an evaluation.
#[derive(Clone, Copy)]
pub(super) struct Evaluator<'a> {
    pub(super) record: &'a [u8],
    pub(super) machine: Machine,
}

impl<'a> Evaluator<'a> {
    /// `None` if the record is too short, or an operation is invalid.
    pub(super) fn eval(&self, expr: &'a Expr) -> Option<Value<'a>> {
        Some(match expr {
            Expr::Number(number, unsigned) => Value::Number(*number, *unsigned),
            Expr::Text(text) => Value::Text(Cow::Borrowed(text)),
            Expr::Unknown => return None,
            Expr::Record => Value::Bytes { bytes: self.record, element: BYTE },
            Expr::Field(location) => self.field(location)?,
            Expr::Dynamic(location) => {
                Value::Bytes { bytes: location.bytes(self.record)?, element: location.element }
            }
            Expr::DynamicLen(location) => Value::Number(location.bytes(self.record)?.len() as i64, false),
            Expr::Bitmask(location) => Value::Bits(location.bytes(self.record)?),
            Expr::Cpumask(location) => {
                Value::Text(bit_list(location.bytes(self.record)?, self.machine).into())
            }
            Expr::Index(array, index) => self.index(array, index)?,
            Expr::Cast(c_type, inner) => cast(*c_type, self.eval(inner)?),
            Expr::Deref(inner) => self.first_element(self.eval(inner)?)?,
            Expr::Unary(unary, inner) => self.unary(*unary, self.number(inner)?),
            Expr::Binary(operator, left, right) => self.binary(operator, left, right)?,
            Expr::Ternary(parts) => {
                let [condition, yes, no] = &**parts;
                self.eval(if self.number(condition)?.0 != 0 { yes } else { no })?
            }
            Expr::Symbols(value, pairs) => Value::Text(self.symbol(self.number(value)?.0, pairs)),
            Expr::Flags(value, between, pairs) => {
                Value::Text(self.flags(self.number(value)?.0, between, pairs).into())
            }
            Expr::Hex(parts, between) => Value::Text(self.hex(&parts[0], &parts[1], between)?.into()),
            Expr::Array(parts) => Value::Text(self.array(&parts[0], &parts[1], &parts[2])?.into()),
        })
    }

    /// The name of a number, or the number itself in the kernel's format if it has none.
    fn symbol(&self, number: i64, pairs: &'a [(Expr, String)]) -> Cow<'a, str> {
        match self.symbol_name(number, pairs) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("{number:#x}")),
        }
    }

    pub(super) fn symbol_name(&self, number: i64, pairs: &'a [(Expr, String)]) -> Option<&'a str> {
        let named = pairs.iter().find(|(value, _)| self.number(value).is_some_and(|value| value.0 == number));
        named.map(|(_, name)| name.as_str())
    }

    pub(super) fn flags(&self, mut rest: i64, between: &str, pairs: &[(Expr, String)]) -> String {
        let mut text = String::new();
        let mut add = |name: &str| {
            if !text.is_empty() {
                text.push_str(between);
            }
            text.push_str(name);
        };
        for (mask, name) in pairs {
            let Some((mask, _)) = (Evaluator { record: &[], ..*self }).number(mask) else { continue };
            if mask != 0 && rest & mask == mask {
                add(name);
                rest &= !mask;
            }
        }
        if rest != 0 {
            add(&format!("{rest:#x}"));
        }
        text
    }

    fn hex(&self, bytes: &'a Expr, len: &'a Expr, between: &str) -> Option<String> {
        let Value::Bytes { bytes, .. } = self.eval(bytes)? else { return None };
        let len = usize::try_from(self.number(len)?.0).ok()?.min(bytes.len());
        let digits: Vec<String> = bytes[..len].iter().map(|byte| format!("{byte:02x}")).collect();
        Some(digits.join(between))
    }

    fn array(&self, array: &'a Expr, count: &'a Expr, size: &'a Expr) -> Option<String> {
        let Value::Bytes { bytes, .. } = self.eval(array)? else { return None };
        let count = usize::try_from(self.number(count)?.0).ok()?;
        let size = u8::try_from(self.number(size)?.0).ok().filter(|size| *size > 0)?;
        let element = CType { size, signed: false, pointer: false };
        let mut text = String::new();
        for bytes in bytes.chunks_exact(usize::from(size)).take(count) {
            let number = FieldLocation::number(element, self.machine, bytes)?;
            let blank = if text.is_empty() { "" } else { " " };
            // As trace-cmd writes them; the kernel would write {0x1,0x2}. Writing to a String cannot fail.
            let _ = write!(text, "{blank}{}", number as u64);
        }
        Some(text)
    }

    fn field(&self, location: &FieldLocation) -> Option<Value<'a>> {
        let bytes = location.bytes(self.record)?;
        Some(match location.kind {
            LocationKind::Number => {
                number(location.element, FieldLocation::number(location.element, location.machine, bytes)?)
            }
            _ => Value::Bytes { bytes, element: location.element },
        })
    }

    fn index(&self, array: &'a Expr, index: &'a Expr) -> Option<Value<'a>> {
        let Value::Bytes { bytes, element } = self.eval(array)? else { return None };
        let at = usize::try_from(self.number(index)?.0).ok()?.checked_mul(usize::from(element.size))?;
        self.first_element(Value::Bytes { bytes: bytes.get(at..)?, element })
    }

    fn first_element(&self, value: Value<'a>) -> Option<Value<'a>> {
        let Value::Bytes { bytes, element } = value else { return None };
        Some(number(element, FieldLocation::number(element, self.machine, bytes)?))
    }

    /// The value of an expression as a number.
    pub(super) fn number(&self, expr: &'a Expr) -> Option<Num> {
        match self.eval(expr)? {
            Value::Number(number, unsigned) => Some((number, unsigned)),
            _ => None,
        }
    }

    fn unary(&self, unary: Unary, (number, unsigned): Num) -> Value<'a> {
        match unary {
            Unary::Minus => Value::Number(number.wrapping_neg(), unsigned),
            Unary::Not => Value::Number(i64::from(number == 0), false),
            Unary::Invert => Value::Number(!number, unsigned),
        }
    }

    fn binary(&self, operator: &str, left: &'a Expr, right: &'a Expr) -> Option<Value<'a>> {
        if let Value::Bytes { bytes, element } = self.eval(left)? {
            // An address within the record: old kernels locate texts in this way.
            let by = usize::try_from(self.number(right)?.0).ok().filter(|_| operator == "+")?;
            return Some(Value::Bytes { bytes: bytes.get(by..)?, element });
        }
        let left = self.number(left)?;
        let truth = |truth: bool| Some(Value::Number(i64::from(truth), false));
        match operator {
            "&&" => return truth(left.0 != 0 && self.number(right)?.0 != 0),
            "||" => return truth(left.0 != 0 || self.number(right)?.0 != 0),
            _ => {}
        }
        let right = self.number(right)?;
        let unsigned = left.1 || right.1;
        let order = if unsigned { (left.0 as u64).cmp(&(right.0 as u64)) } else { left.0.cmp(&right.0) };
        match operator {
            "==" => return truth(order.is_eq()),
            "!=" => return truth(order.is_ne()),
            "<" => return truth(order.is_lt()),
            "<=" => return truth(order.is_le()),
            ">" => return truth(order.is_gt()),
            ">=" => return truth(order.is_ge()),
            _ => {}
        }
        Some(Value::Number(arithmetic(operator, left, right, unsigned)?, unsigned))
    }
}

const BYTE: CType = CType { size: 1, signed: false, pointer: false };

fn arithmetic(operator: &str, (left, left_unsigned): Num, (right, _): Num, unsigned: bool) -> Option<i64> {
    Some(match operator {
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        // A shift by too many bits is undefined in C; this is the behaviour of x86.
        "<<" => left.wrapping_shl(right as u32),
        ">>" if left_unsigned => (left as u64).wrapping_shr(right as u32) as i64,
        ">>" => left.wrapping_shr(right as u32),
        "/" if unsigned => (left as u64).checked_div(right as u64)? as i64,
        "/" => left.checked_div(right)?,
        "%" if unsigned => (left as u64).checked_rem(right as u64)? as i64,
        "%" => left.checked_rem(right)?,
        _ => return None,
    })
}

fn number(c_type: CType, number: i64) -> Value<'static> {
    Value::Number(number, c_type.size == 8 && !c_type.signed)
}

fn cast(c_type: CType, value: Value<'_>) -> Value<'_> {
    match value {
        Value::Bytes { bytes, element } if c_type.pointer => {
            let element = if c_type.size > 0 { CType { pointer: false, ..c_type } } else { element };
            Value::Bytes { bytes, element }
        }
        Value::Number(bits, _) if !c_type.pointer && c_type.size > 0 => {
            number(c_type, truncate(bits, c_type.size, c_type.signed))
        }
        Value::Number(bits, _) if c_type.pointer => Value::Number(bits, true),
        other => other,
    }
}

/// The value of the lower `size` bytes of a number.
pub(super) fn truncate(bits: i64, size: u8, signed: bool) -> i64 {
    match (size, signed) {
        (1, true) => i64::from(bits as i8),
        (1, false) => i64::from(bits as u8),
        (2, true) => i64::from(bits as i16),
        (2, false) => i64::from(bits as u16),
        (4, true) => i64::from(bits as i32),
        (4, false) => i64::from(bits as u32),
        _ => bits,
    }
}
