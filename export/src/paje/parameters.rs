//! The parameters of an event as one text: `len=64, from=24(eth0)`.

use std::io::Write;

use sigmund_model::{EventType, FieldType, Param, Params};

use super::name::{self, Commas};

/// Appends all of them, in their written form. There is a comma between two of them and nowhere else.
pub(super) fn write(out: &mut Vec<u8>, event: &EventType, params: &Params) {
    for (index, param) in params.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        let field = event.fields.get(index);
        if let Some(field) = field {
            name::write(out, &field.name, Commas::Replaced);
            out.push(b'=');
        }
        value(out, field.map_or(FieldType::I64, |field| field.ty), param);
    }
}

fn value(out: &mut Vec<u8>, ty: FieldType, param: Param<'_>) {
    match (param.number, param.text) {
        (Some(value), Some(text)) => {
            number(out, ty, value);
            out.push(b'(');
            name::write(out, text, Commas::Replaced);
            out.push(b')');
        }
        (Some(value), None) => number(out, ty, value),
        (None, Some(text)) => name::write(out, text, Commas::Replaced),
        (None, None) => out.push(b'?'),
    }
}

fn number(out: &mut Vec<u8>, ty: FieldType, value: i64) {
    let bits = value as u64;
    let written = match ty {
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::Thread => {
            super::lines::decimal(out, bits);
            return;
        }
        FieldType::I64 | FieldType::Bool | FieldType::Text => {
            if value < 0 {
                out.push(b'-');
            }
            super::lines::decimal(out, value.unsigned_abs());
            return;
        }
        FieldType::F64 => write!(out, "{}", f64::from_bits(bits)),
        FieldType::Pointer => write!(out, "{bits:#x}"),
    };
    written.expect("a Vec takes everything");
}

#[cfg(test)]
mod tests {
    use sigmund_model::{Field, Level};

    use super::*;

    #[test]
    fn each_type_prints_as_what_it_is() {
        let types = [
            ("len", FieldType::U64),
            ("delta", FieldType::I64),
            ("load", FieldType::F64),
            ("at", FieldType::Pointer),
            ("irq", FieldType::I64),
            ("say", FieldType::Text),
            ("gone", FieldType::Text),
        ];
        let fields = types.map(|(name, ty)| Field { name: name.into(), ty }).into();
        let event = EventType {
            level: Level::User,
            code: None,
            name: "all".into(),
            key: 0,
            fields,
            format: String::new(),
        };
        let mut params = Params::default();
        params.push_number(-1);
        params.push_number(i64::MIN);
        params.push_number(0.5_f64.to_bits() as i64);
        params.push_number(0x7ffe);
        params.push_named(24, "eth0");
        params.push_text("a, \"b\"");
        params.push_unknown();
        params.push_number(7);
        let mut out = Vec::new();
        write(&mut out, &event, &params);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "len=18446744073709551615, delta=-9223372036854775808, load=0.5, at=0x7ffe, irq=24(eth0), \
             say=a%2C %22b%22, gone=?, 7"
        );
    }
}
