//! The output of `babeltrace2`, line by line, in a form that can be compared with events.

use sigmund_model::{Event, EventType, FieldType};

/// One line: `[06:41:49.468681414] (+?.?????????) vm pp:send: { cpu_id = 1 }, { vpid = 8948 }, { seq = 0 }`.
#[derive(Debug)]
pub(super) struct Line {
    /// Clock cycles, or nanoseconds since midnight.
    pub(super) time: u64,
    pub(super) name: String,
    pub(super) cpu: Option<u32>,
    /// Names with dots, and their values.
    fields: Vec<(String, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// `12`, `-1`, `0xFF`, `1343.89`
    Number(String),
    Text(String),
    /// `( "many" : container = 3 )`
    Named(String, String),
    List(Vec<Value>),
    Group(Vec<(String, Value)>),
}

pub(super) fn parse(text: &str) -> Vec<Line> {
    text.lines().map(line).collect()
}

fn line(text: &str) -> Line {
    let (time, rest) = text.strip_prefix('[').and_then(|t| t.split_once("] (")).unwrap();
    let (_, rest) = rest.split_once(") ").unwrap();
    let (head, mut rest) = rest.split_once(": {").map(|(head, _)| (head, &rest[head.len() + 2..])).unwrap();
    let name = head.rsplit_once(' ').map_or(head, |(_, name)| name).to_owned();
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let Value::Group(group) = value(&mut rest) else { panic!("{text}") };
        flatten("", group, &mut fields);
        rest = rest.strip_prefix(", ").unwrap_or(rest);
    }
    let cpu = fields.iter().position(|(name, _)| name == "cpu_id").map(|at| fields.remove(at));
    let cpu = cpu.map(|(_, cpu)| if let Value::Number(cpu) = cpu { cpu.parse().unwrap() } else { panic!() });
    Line { time: nanos(time), name, cpu, fields }
}

fn nanos(time: &str) -> u64 {
    let Some((seconds, fraction)) = time.split_once('.') else { return time.parse().unwrap() };
    let seconds: u64 = seconds.split(':').fold(0, |sum, part| sum * 60 + part.parse::<u64>().unwrap());
    seconds * 1_000_000_000 + fraction.parse::<u64>().unwrap()
}

fn flatten(prefix: &str, group: Vec<(String, Value)>, fields: &mut Vec<(String, Value)>) {
    for (name, value) in group {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Group(inner) => flatten(&name, inner, fields),
            value => fields.push((name, value)),
        }
    }
}

fn skip(rest: &mut &str, sign: &str) -> bool {
    let behind = rest.trim_start().strip_prefix(sign);
    *rest = behind.unwrap_or(rest);
    behind.is_some()
}

fn value(rest: &mut &str) -> Value {
    if skip(rest, "{") {
        // The option of a variant: `{ 12 }`, `{ { x = 1 } }`.
        if rest.trim_start().starts_with(|c: char| "\"{[(-".contains(c) || c.is_ascii_digit()) {
            let option = value(rest);
            assert!(skip(rest, "}"), "{rest}");
            return option;
        }
        return Value::Group(members(rest, "}"));
    }
    if skip(rest, "[") {
        return Value::List(members(rest, "]").into_iter().map(|(_, value)| value).collect());
    }
    if skip(rest, "(") {
        // `( "a" : container = 3 )`; of a number without a label, `( <unknown> : container = 3 )`.
        let label = if skip(rest, "<unknown>") { None } else { Some(value(rest)) };
        // Of overlapping ranges it prints all labels.
        while skip(rest, ",") {
            value(rest);
        }
        assert!(skip(rest, ": container ="), "{rest}");
        let Value::Number(number) = value(rest) else { panic!("{rest}") };
        assert!(skip(rest, ")"), "{rest}");
        return match label {
            Some(Value::Text(label)) => Value::Named(number, label),
            _ => Value::Number(number),
        };
    }
    if skip(rest, "\"") {
        let end = rest.find('"').unwrap();
        let text = rest[..end].to_owned();
        *rest = &rest[end + 1..];
        return Value::Text(text);
    }
    let text = rest.trim_start();
    let end = text.find([' ', ',']).unwrap_or(text.len());
    *rest = &text[end..];
    Value::Number(text[..end].to_owned())
}

fn members(rest: &mut &str, close: &str) -> Vec<(String, Value)> {
    let mut members = Vec::new();
    while !skip(rest, close) {
        let (name, behind) = rest.split_once(" = ").unwrap_or_else(|| panic!("{rest:?}"));
        *rest = behind;
        members.push((name.trim().to_owned(), value(rest)));
        skip(rest, ",");
    }
    members
}

/// Compares every field of the line with a parameter, and checks that no other parameter is known; returns the number
/// of parameters compared.
pub(super) fn compare_fields(line: &Line, event: &Event, ty: &EventType) -> usize {
    let mut compared = 0;
    for (at, (name, value)) in line.fields.iter().enumerate() {
        // Contexts come first; if a field has the same name, ours has another name.
        let again = line.fields[at + 1..].iter().any(|(other, _)| other == name);
        let ours = if again { format!("context.{name}") } else { name.clone() };
        let index = place(&ours, event, ty);
        let Some(index) = index else {
            // Up to eight numbers of an array have a parameter each.
            let Value::List(values) = value else { panic!("no {name} in {ty:?}") };
            for (element, value) in values.iter().enumerate() {
                let index =
                    ty.field(&format!("{name}{element}")).unwrap_or_else(|| panic!("{name} in {line:?}"));
                compare_one(value, event, ty, index);
                compared += 1;
            }
            continue;
        };
        compare_one(value, event, ty, index);
        compared += 1;
    }
    let known = event.params.iter().filter(|p| p.number.is_some() || p.text.is_some()).count();
    assert_eq!(known, compared, "{line:?} {event:?}");
    compared
}

/// The parameter with this name; for a variant, its present option: `v.option`, `v.option.inner`.
fn place(name: &str, event: &Event, ty: &EventType) -> Option<usize> {
    let known = |at: &usize| event.params.get(*at).is_some_and(|p| p.number.is_some() || p.text.is_some());
    let of_option = |field: &str| {
        let parts: Vec<&str> = field.split('.').collect();
        // One of the parts is the option's name, which is not printed.
        (0..parts.len()).any(|option| [&parts[..option], &parts[option + 1..]].concat().join(".") == name)
    };
    let option = || (0..ty.fields.len()).filter(known).find(|at| of_option(&ty.fields[*at].name));
    ty.field(name).or_else(option)
}

fn compare_one(value: &Value, event: &Event, ty: &EventType, index: usize) {
    let param = event.params.get(index).unwrap();
    let field = &ty.fields[index];
    let same = match value {
        Value::Number(printed) if field.ty == FieldType::F64 => {
            let (ours, theirs) =
                (f64::from_bits(param.number.unwrap() as u64), printed.parse::<f64>().unwrap());
            // It prints six digits.
            (ours - theirs).abs() <= theirs.abs() * 1e-5
        }
        Value::Number(printed) => param.text.is_none() && param.number == Some(number(printed)),
        Value::Named(printed, label) => {
            param.number == Some(number(printed)) && param.text == Some(label.as_str())
        }
        Value::Text(text) => param.number.is_none() && param.text == Some(text.as_str()),
        Value::List(_) => param.text == Some(list(value).as_str()),
        Value::Group(_) => false,
    };
    assert!(same, "{}: {param:?}, not {value:?}", field.name);
}

fn number(printed: &str) -> i64 {
    match printed.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap() as i64,
        None => printed.parse::<i64>().unwrap_or_else(|_| printed.parse::<u64>().unwrap() as i64),
    }
}

/// A list as we write it.
fn list(value: &Value) -> String {
    match value {
        Value::Number(printed) => printed.clone(),
        Value::Text(text) => text.clone(),
        Value::Named(number, label) => format!("{number}({label})"),
        Value::List(values) => format!("[{}]", values.iter().map(list).collect::<Vec<_>>().join(", ")),
        Value::Group(members) => {
            format!("{{{}}}", members.iter().map(|(_, value)| list(value)).collect::<Vec<_>>().join(", "))
        }
    }
}
