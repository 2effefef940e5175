//! Runs a plan on the bits of a packet.

use super::super::bits::{Bits, PastEnd};
use super::out::ValueSink;
use super::{Count, Float, List, Number, Op, Shape, State, Stop, VariantPlan};

/// Reads the fields that `ops` describe into `out`.
#[inline]
pub(crate) fn run<O: ValueSink>(
    ops: &[Op],
    bits: &mut Bits<'_>,
    state: &mut State,
    out: &mut O,
) -> Result<(), Stop> {
    // One more, so that empty plans cost a step as well.
    let cost = ops.len() as u64 + 1;
    state.steps_left = state.steps_left.checked_sub(cost).ok_or(Stop::TooManySteps)?;
    for op in ops {
        match op {
            Op::Align(mask) => bits.align(*mask),
            Op::Number(number) => {
                let value = number.read(bits)?;
                state.keep(number.keep, value as u64);
                match &number.labels {
                    None => out.number(value, number.signed),
                    Some(labels) => match labels.name(value as u64) {
                        Some(name) => out.named(value, name),
                        None => out.number(value, number.signed),
                    },
                }
            }
            Op::Clock(number) => {
                let value = number.read(bits)?;
                state.keep(number.keep, value as u64);
                state.widen(value as u64, number.size);
            }
            Op::Float(float) => out.float(float.read(bits)?),
            Op::Text => out.text(bits.text()?),
            Op::Chars { align, count } => {
                bits.align(*align);
                let bytes = bits.bytes(count.get(state))?;
                let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                out.text(&bytes[..len]);
            }
            Op::List(list) => out.list(list, bits, state)?,
            Op::Variant(variant) => choose(variant, bits, state, out)?,
            Op::Uuid => state.uuid = bits.bytes(16)?.try_into().unwrap_or_default(),
        }
    }
    Ok(())
}

#[inline(never)]
fn choose<O: ValueSink>(
    variant: &VariantPlan,
    bits: &mut Bits<'_>,
    state: &mut State,
    out: &mut O,
) -> Result<(), Stop> {
    let tag = state.get(variant.tag);
    let range = variant.ranges.index(tag).ok_or(Stop::NoOption(tag))?;
    let option = variant.chosen.get(range).and_then(|option| variant.options.get(*option));
    let option = option.ok_or(Stop::NoOption(tag))?;
    out.unknown(option.before);
    run(&option.ops, bits, state, out)?;
    out.unknown(variant.parameters - option.before - option.own);
    Ok(())
}

/// The elements of a list, one after the other.
pub(super) fn elements<O: ValueSink>(
    list: &List,
    bits: &mut Bits<'_>,
    state: &mut State,
    out: &mut O,
) -> Result<(), Stop> {
    bits.align(list.align);
    for _ in 0..list.count.get(state) {
        let before = bits.pos();
        if list.braces {
            out.between("{");
        }
        run(&list.element, bits, state, out)?;
        if list.braces {
            out.between("}");
        }
        // If one element takes no bits, none do, and there may be 2^64 of them.
        if bits.pos() == before {
            break;
        }
    }
    Ok(())
}

impl Count {
    #[inline]
    fn get(self, state: &State) -> u64 {
        match self {
            Count::Fixed(count) => count,
            Count::In(register) => state.get(register),
        }
    }
}

impl Number {
    /// Its value; for an unsigned number, its bits.
    #[inline(always)]
    fn read(&self, bits: &mut Bits<'_>) -> Result<i64, PastEnd> {
        bits.align(self.align);
        let raw = match self.shape {
            Shape::Byte => u64::from(bits.array::<1>()?[0]),
            Shape::Little16 => u64::from(u16::from_le_bytes(bits.array()?)),
            Shape::Little32 => u64::from(u32::from_le_bytes(bits.array()?)),
            Shape::Little64 => u64::from_le_bytes(bits.array()?),
            Shape::Big16 => u64::from(u16::from_be_bytes(bits.array()?)),
            Shape::Big32 => u64::from(u32::from_be_bytes(bits.array()?)),
            Shape::Big64 => u64::from_be_bytes(bits.array()?),
            Shape::Bits => bits.number(self.size, self.order)?,
        };
        Ok((raw << self.extend) as i64 >> self.extend)
    }
}

impl Float {
    fn read(&self, bits: &mut Bits<'_>) -> Result<f64, PastEnd> {
        bits.align(self.align);
        Ok(match self.is_double {
            true => f64::from_bits(bits.number(64, self.order)?),
            false => f64::from(f32::from_bits(bits.number(32, self.order)? as u32)),
        })
    }
}
