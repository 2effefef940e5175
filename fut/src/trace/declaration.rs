//! Declarations, encoded as bytes. They describe the events of a program, so that readers need no other description.
//!
//! ```text
//! {u32 code, u64 key, text name, text format, text file, u32 line, u32 fields, {u8 type, text name}…}…
//! ```
//! A text is a `u32` length and its bytes. A type is its index in [`FieldType::ALL`].

use sigmund_model::{EventType, Field, FieldType, Level};

use super::wire::{Cut, TraceError, push_text};

/// A declared event, with the source location of its declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The event.
    pub event: EventType,
    /// Source file; may be empty.
    pub file: String,
    /// Source line; 0 if unknown.
    pub line: u32,
}

/// Declarations as the payload of a packet of kind `DECLARATIONS`.
pub fn encode_declarations<'a>(declarations: impl Iterator<Item = &'a Declaration>) -> Vec<u8> {
    let mut out = Vec::new();
    for declaration in declarations {
        let event = &declaration.event;
        out.extend_from_slice(&event.code.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&event.key.to_le_bytes());
        push_text(&mut out, &event.name);
        push_text(&mut out, &event.format);
        push_text(&mut out, &declaration.file);
        out.extend_from_slice(&declaration.line.to_le_bytes());
        out.extend_from_slice(&(event.fields.len() as u32).to_le_bytes());
        for field in &event.fields {
            let place = FieldType::ALL.iter().position(|t| *t == field.ty).unwrap_or(0);
            out.push(place as u8);
            push_text(&mut out, &field.name);
        }
    }
    out
}

/// Reads what [`encode_declarations`] writes.
///
/// # Errors
/// If the payload ends in the middle of a declaration, or names a field type that does not exist.
pub fn decode_declarations(payload: &[u8], at: u64) -> Result<Vec<Declaration>, TraceError> {
    let mut cut = Cut::new(payload, at);
    let mut declarations = Vec::new();
    while !cut.is_empty() {
        let code = cut.u32("declaration: code")?;
        let key = cut.u64("declaration: key")?;
        let name = cut.text("declaration: name")?;
        let format = cut.text("declaration: format")?;
        let file = cut.text("declaration: file")?;
        let line = cut.u32("declaration: line")?;
        let count = cut.u32("declaration: number of fields")?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let place = cut.u8("declaration: field type")?;
            let Some(ty) = FieldType::ALL.get(usize::from(place)).copied() else {
                return Err(
                    cut.bad(format!("a field type below {}", FieldType::ALL.len()), place.to_string())
                );
            };
            fields.push(Field { name: cut.text("declaration: field name")?, ty });
        }
        let event = EventType { level: Level::User, code: Some(code), name, key, fields, format };
        declarations.push(Declaration { event, file, line });
    }
    Ok(declarations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received() -> Declaration {
        let fields = vec![
            Field { name: "len".into(), ty: FieldType::U64 },
            Field { name: "from".into(), ty: FieldType::Text },
        ];
        let event = EventType {
            level: Level::User,
            code: Some(9),
            name: "received_msg".into(),
            key: 0x100,
            fields,
            format: "{len} bytes from {from}".into(),
        };
        Declaration { event, file: "daemon.rs".into(), line: 17 }
    }

    #[test]
    fn declarations_come_back_as_they_were() {
        let both = [received(), received()];
        assert_eq!(decode_declarations(&encode_declarations(both.iter()), 0).unwrap(), both);
    }

    #[test]
    fn a_cut_or_impossible_declaration_is_an_error_with_its_place() {
        let whole = encode_declarations([received()].iter());
        for len in 1..whole.len() {
            assert!(decode_declarations(&whole[..len], 0).is_err(), "{len}");
        }
        let mut wrong = whole.clone();
        let place = wrong.len() - "from".len() - 4 - 1;
        wrong[place] = 200;
        let error = decode_declarations(&wrong, 1000).unwrap_err().to_string();
        assert!(error.contains(&format!("byte {}", 1000 + place + 1)) && error.contains("200"), "{error}");
    }
}
