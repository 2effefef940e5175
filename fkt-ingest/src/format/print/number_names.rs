//! Names of a field's numbers in `print fmt`: `__print_symbolic(REC->vec, …)`, `__print_flags(REC->f, …)`.

use super::expr::Expr;
use super::field_location::LocationKind;
use super::value::Evaluator;
use crate::cut::ByteOrder;
use crate::format::machine::Machine;

/// The names of one field's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NumberNames {
    /// A name for each number, sorted by number.
    Symbols(Vec<(i64, Box<str>)>),
    /// A name for each bit mask, in the order in which they are matched and removed; the separator; and the text for no
    /// bits.
    Flags { between: Box<str>, flags: Vec<(i64, Box<str>)>, none: Box<str> },
}

impl NumberNames {
    /// Appends the name of a number to `text`; nothing if there is none.
    pub(crate) fn write(&self, number: i64, text: &mut String) {
        let empty = text.len();
        match self {
            NumberNames::Symbols(symbols) => {
                if let Ok(at) = symbols.binary_search_by_key(&number, |(number, _)| *number) {
                    text.push_str(symbols.get(at).map_or("", |(_, name)| name));
                }
            }
            NumberNames::Flags { none, .. } if number == 0 => text.push_str(none),
            NumberNames::Flags { between, flags, .. } => {
                let mut rest = number;
                for (mask, name) in flags {
                    if rest & mask == *mask {
                        if text.len() > empty {
                            text.push_str(between);
                        }
                        text.push_str(name);
                        rest &= !mask;
                    }
                }
                if rest != 0 && text.len() > empty {
                    text.push_str(between);
                    text.push_str(&format!("{rest:#x}"));
                }
            }
        }
    }
}

/// The names of all fields in these arguments that have any, by the offset of the field.
pub(super) fn of(arguments: &[Expr]) -> Vec<(u32, NumberNames)> {
    let mut found: Vec<(u32, NumberNames)> = Vec::new();
    for argument in arguments {
        let Some((offset, names)) = named(argument) else { continue };
        if found.iter().all(|(other, _)| *other != offset) {
            found.push((offset, names));
        }
    }
    found
}

fn named(argument: &Expr) -> Option<(u32, NumberNames)> {
    match argument {
        Expr::Symbols(value, pairs) => {
            let mut symbols = constants(pairs);
            // Of two names for a number, the first one applies: the sort is stable.
            symbols.sort_by_key(|(number, _)| *number);
            symbols.dedup_by_key(|(number, _)| *number);
            Some((field(value)?, NumberNames::Symbols(symbols)))
        }
        Expr::Flags(value, between, pairs) => {
            let mut flags = constants(pairs);
            flags.retain(|(mask, _)| *mask != 0);
            let (between, none) = (between.as_str().into(), "".into());
            Some((field(value)?, NumberNames::Flags { between, flags, none }))
        }
        // `REC->flags ? __print_flags(REC->flags, …) : "none"`
        Expr::Ternary(parts) => {
            let [condition, yes, Expr::Text(otherwise)] = &**parts else { return None };
            let (offset, mut names) = named(yes)?;
            if let (NumberNames::Flags { none, .. }, Some(offset_too)) = (&mut names, field(condition))
                && offset_too == offset
            {
                *none = otherwise.as_str().into();
            }
            Some((offset, names))
        }
        _ => None,
    }
}

/// The field that an expression is, with or without a cast.
fn field(value: &Expr) -> Option<u32> {
    match value {
        Expr::Field(location) if location.kind == LocationKind::Number => Some(location.offset),
        Expr::Cast(_, inner) => field(inner),
        _ => None,
    }
}

fn constants(pairs: &[(Expr, String)]) -> Vec<(i64, Box<str>)> {
    let machine = Machine { order: ByteOrder::Little, long_size: 8, is_x86_64: false };
    let scope = Evaluator { record: &[], machine };
    let constant = |(value, name): &(Expr, String)| Some((scope.number(value)?.0, name.as_str().into()));
    pairs.iter().filter_map(constant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(names: &NumberNames, number: i64) -> String {
        let mut text = "before ".to_owned();
        names.write(number, &mut text);
        text.split_off("before ".len())
    }

    #[test]
    fn a_number_has_the_name_of_its_symbol_or_of_its_bits() {
        let symbols = NumberNames::Symbols(vec![(1, "TIMER".into()), (7, "SCHED".into())]);
        assert_eq!((name(&symbols, 7), name(&symbols, 2)), ("SCHED".to_owned(), String::new()));
        let flags = vec![(3, "both".into()), (1, "low".into()), (4, "third".into())];
        let flags = NumberNames::Flags { between: "|".into(), flags, none: "none".into() };
        let named = [0, 3, 5, 9, 8].map(|number| name(&flags, number));
        assert_eq!(named, ["none", "both", "low|third", "low|0x8", ""]);
    }
}
