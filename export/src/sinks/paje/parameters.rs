//! The parameters of an event as one text: `len=64, from=24(eth0)`.

use std::io::Write;

use sigmund_model::{EventType, FieldType, Param, Params};

use super::{
    digits::{ShortText, decimal, hexadecimal},
    name::{self, Commas},
};

/// The declared fields of an event.
pub(super) struct ParameterFields {
    fields: Vec<Field>,
}

struct Field {
    /// `, from=`; the first field has no comma.
    label: ShortText,
    ty: FieldType,
}

impl ParameterFields {
    pub(super) fn of(event: &EventType) -> ParameterFields {
        let field = |(index, field): (usize, &sigmund_model::Field)| {
            let mut label = separator(index).to_vec();
            name::write(&mut label, &field.name, Commas::Replaced);
            label.push(b'=');
            Field { label: ShortText::new(&label), ty: field.ty }
        };
        ParameterFields { fields: event.fields.iter().enumerate().map(field).collect() }
    }

    /// Appends all parameters in their written form. Commas occur only between parameters.
    pub(super) fn write(&self, out: &mut Vec<u8>, params: &Params) {
        for (index, param) in params.iter().enumerate() {
            let Some(field) = self.fields.get(index) else {
                out.extend_from_slice(separator(index));
                value(out, FieldType::I64, param);
                continue;
            };
            field.label.append_to(out);
            value(out, field.ty, param);
        }
    }
}

fn separator(index: usize) -> &'static [u8] {
    if index == 0 { b"" } else { b", " }
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
    match ty {
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::Thread => {
            decimal(out, bits)
        }
        FieldType::I64 | FieldType::Bool | FieldType::Text => {
            if value < 0 {
                out.push(b'-');
            }
            decimal(out, value.unsigned_abs());
        }
        FieldType::F64 => write!(out, "{}", f64::from_bits(bits)).expect("writing to a Vec does not fail"),
        FieldType::Pointer => {
            out.extend_from_slice(b"0x");
            hexadecimal(out, bits);
        }
    }
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
        ParameterFields::of(&event).write(&mut out, &params);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "len=18446744073709551615, delta=-9223372036854775808, load=0.5, at=0x7ffe, irq=24(eth0), \
             say=a%2C %22b%22, gone=?, 7"
        );
    }
}
