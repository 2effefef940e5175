//! Parses the format text. It does not interpret the fields; [`decode`](super::decode) does.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_till, take_until, take_while};
use nom::character::complete::{multispace0, space0, u16 as number16, u32 as number32};
use nom::combinator::{opt, rest};
use nom::multi::{many0, many1};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

/// One event, as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFormat {
    /// The folder of the event, `sched`, which the text does not contain.
    pub(crate) system: String,
    pub(crate) name: String,
    /// `common_type` of its records.
    pub(crate) id: u16,
    /// All fields, the `common_` ones first.
    pub(crate) fields: Vec<FieldFormat>,
    /// The text after `print fmt:`.
    pub(crate) print_fmt: String,
}

/// One field, as declared: `field:char prev_comm[16]; offset:8; size:16; signed:0;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldFormat {
    /// `char`, `unsigned long`, `__data_loc char[]`; without the array part after the name.
    pub(crate) c_type: String,
    pub(crate) name: String,
    /// The text in the brackets after the name: `Some("16")`, `Some("")`.
    pub(crate) array: Option<String>,
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) signed: bool,
}

/// Parses one event's format; `Err` is the rest of the text from the first error on.
pub(crate) fn event_format(text: &str) -> Result<EventFormat, String> {
    match event(text) {
        Ok((_, format)) => Ok(format),
        Err(nom::Err::Error(e) | nom::Err::Failure(e)) => Err(e.input.chars().take(40).collect()),
        Err(nom::Err::Incomplete(_)) => Err(String::new()),
    }
}

/// Parses a list of fields alone: `header_page`.
pub(crate) fn fields(text: &str) -> Vec<FieldFormat> {
    many0(field).parse(text).map(|(_, fields)| fields).unwrap_or_default()
}

fn event(text: &str) -> IResult<&str, EventFormat> {
    let (text, name) = preceded((multispace0, tag("name:"), space0), line).parse(text)?;
    let (text, id) = preceded((multispace0, tag("ID:"), space0), number16).parse(text)?;
    let (text, _) = (multispace0, tag("format:")).parse(text)?;
    let (text, fields) = many1(field).parse(text)?;
    // Up to the end of the text, because some formats have a line break within their quotes.
    let (text, print_fmt) = opt(preceded((multispace0, tag("print fmt:"), space0), rest)).parse(text)?;
    let print_fmt = print_fmt.unwrap_or_default().trim_end().to_owned();
    let (system, name) = (String::new(), name.trim().to_owned());
    Ok((text, EventFormat { system, name, id, fields, print_fmt }))
}

fn field(text: &str) -> IResult<&str, FieldFormat> {
    let start = (multispace0, alt((tag("field:"), tag("field special:"))));
    let (text, declaration) = delimited(start, take_until(";"), tag(";")).parse(text)?;
    let (text, offset) = number_after("offset:", text)?;
    let (text, size) = number_after("size:", text)?;
    let (text, signed) = opt(|t| number_after("signed:", t)).parse(text)?;
    let (c_type, name, array) = split_declaration(declaration);
    Ok((text, FieldFormat { c_type, name, array, offset, size, signed: signed == Some(1) }))
}

fn number_after<'a>(word: &'static str, text: &'a str) -> IResult<&'a str, u32> {
    terminated(preceded((space0, tag(word)), number32), tag(";")).parse(text)
}

fn line(text: &str) -> IResult<&str, &str> {
    terminated(take_till(|c| c == '\n'), take_while(|c| c == '\n')).parse(text)
}

/// `unsigned long args[6]` is of type `unsigned long`, named `args`, with `6` in its brackets.
fn split_declaration(declaration: &str) -> (String, String, Option<String>) {
    let declaration = declaration.trim();
    let (before, array) = match declaration.strip_suffix(']').and_then(|d| d.rsplit_once('[')) {
        Some((before, inside)) => (before.trim_end(), Some(inside.to_owned())),
        None => (declaration, None),
    };
    let name_at = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    let (c_type, name) = before.split_at_checked(name_at).unwrap_or((before, ""));
    (c_type.trim().to_owned(), name.to_owned(), array)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IRQ: &str = "name: irq_handler_entry\nID: 225\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"irq=%d name=%s\", REC->irq, __get_str(name)\n";

    #[test]
    fn an_event_is_read_as_the_kernel_writes_it() {
        let format = event_format(IRQ).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.fields.len()), ("irq_handler_entry", 225, 3));
        let name = &format.fields[2];
        assert_eq!((name.c_type.as_str(), name.name.as_str()), ("__data_loc char[]", "name"));
        assert_eq!((name.array.as_deref(), name.offset, name.size, name.signed), (None, 12, 4, false));
        assert_eq!(format.print_fmt, "\"irq=%d name=%s\", REC->irq, __get_str(name)");
    }

    #[test]
    fn the_name_is_the_last_word_before_the_brackets() {
        let split = |d| {
            let (c_type, name, array) = split_declaration(d);
            (c_type, name, array.unwrap_or("-".into()))
        };
        let owned = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(split("unsigned long args[6]"), owned("unsigned long", "args", "6"));
        assert_eq!(split("const char *name"), owned("const char *", "name", "-"));
        assert_eq!(split("char buf[]"), owned("char", "buf", ""));
    }

    #[test]
    fn the_error_for_other_text_is_where_it_stops() {
        assert_eq!(event_format("name: x\nID: many\n").unwrap_err(), "many\n");
    }
}
