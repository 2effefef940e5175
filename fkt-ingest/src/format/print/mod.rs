//! Evaluates the kernel's `print fmt`: formats one record as in tracefs' `trace` file.
//!
//! ```text
//!   print fmt: "vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" })
//!              [`conversion`]        [`expr`] parses the arguments, [`value`] evaluates them
//! ```
//!
//! The output is that of `trace-cmd report -N` (libtraceevent 1.7.1, without its plugins), which is the kernel's except
//! that addresses are not hashed. Where libtraceevent treats a signed field as unsigned, this follows the rules of C.

mod conversion;
mod expr;
mod field_location;
mod lexer;
mod number_names;
mod pointer;
mod printk;
mod types;
mod value;

use self::conversion::{Conversion, Piece, Size, pieces};
use self::expr::{Expr, Parser};
pub(super) use self::field_location::{FieldLocation, LocationKind};
use self::lexer::{Token, tokens};
pub(super) use self::number_names::NumberNames;
pub(super) use self::pointer::{bit_list, bit_mask};
pub(super) use self::printk::print as print_printk;
use self::value::{Evaluator, Value};
use super::machine::Machine;
use super::names::Names;
use super::text::EventFormat;

/// A parsed format.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PrintFormat {
    pieces: Vec<Piece>,
    arguments: Vec<Expr>,
}

impl PrintFormat {
    /// `None` if it has something that is not supported.
    pub(super) fn parse(format: &EventFormat, machine: Machine) -> Option<PrintFormat> {
        let words = tokens(&format.print_fmt)?;
        let literals = words.iter().take_while(|word| matches!(word, Token::Text(_))).count();
        let (texts, rest) = words.split_at_checked(literals).filter(|(texts, _)| !texts.is_empty())?;
        let template: String =
            texts.iter().map(|word| if let Token::Text(text) = word { text.as_str() } else { "" }).collect();
        let arguments = match rest.split_first() {
            None => Vec::new(),
            Some((Token::Mark(","), rest)) => Parser::new(rest, &format.fields, machine).list()?,
            Some(_) => return None,
        };
        Some(PrintFormat { pieces: pieces(&template)?, arguments })
    }

    /// Writes a record's line. A value that is not in the record is a `?`.
    pub(super) fn print(&self, record: &[u8], machine: Machine, names: &Names, out: &mut String) {
        let scope = Evaluator { record, machine };
        let mut arguments = self.arguments.iter();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Conversion(conversion) => {
                    let mut sized = |size| match size {
                        Some(Size::Argument) => arguments.next().and_then(|e| scope.number(e)).map(|n| n.0),
                        _ => None,
                    };
                    let (width, precision) = (sized(conversion.width), sized(conversion.precision));
                    let value = arguments.next().and_then(|argument| scope.eval(argument));
                    let conversion = conversion.sized(width, precision);
                    write(&conversion, value.as_ref(), machine, names, out);
                }
            }
        }
    }

    /// Fields with names for their numbers in this format: their offsets, and the names.
    pub(super) fn number_names(&self) -> Vec<(u32, NumberNames)> {
        number_names::of(&self.arguments)
    }
}

fn write(
    conversion: &Conversion,
    value: Option<&Value<'_>>,
    machine: Machine,
    names: &Names,
    out: &mut String,
) {
    let Some(value) = value else { return conversion.text("?", out) };
    match (conversion.kind, value) {
        ('p', _) => {
            let mut text = String::new();
            let extension = conversion.extension.as_str();
            let counts_bytes = extension.starts_with(['h', 'b']);
            let len = conversion.fixed_width().filter(|_| counts_bytes);
            pointer::write(extension, value, len, machine, names, &mut text);
            if counts_bytes { out.push_str(&text) } else { conversion.text(&text, out) }
        }
        ('s', Value::Text(text)) => conversion.text(text, out),
        ('s', Value::Bytes { bytes, .. }) => conversion.text(&text_of(bytes), out),
        ('s', Value::Bits(bits)) => conversion.text(&bit_mask(bits, machine), out),
        // A text that was not copied into the record: only its address is there.
        ('s', Value::Number(address, _)) => match names.printk(*address as u64) {
            Some(text) => conversion.text(text, out),
            None => conversion.text(&format!("{address:x}"), out),
        },
        (_, Value::Number(bits, _)) => conversion.number(*bits, machine, out),
        (_, Value::Bytes { .. } | Value::Bits(_) | Value::Text(_)) => conversion.text("?", out),
    }
}

/// The bytes up to a NUL, as text.
pub(super) fn text_of(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text::event_format;

    const FIELDS: &str = "name: x\nID: 1\nformat:\n\
        \tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n\
        \tfield:u64 b;\toffset:4;\tsize:8;\tsigned:0;\n\
        \tfield:char c[4];\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] d;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc u16[] e;\toffset:20;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned short f[2];\toffset:24;\tsize:4;\tsigned:0;\n";

    fn record() -> Vec<u8> {
        let mut record = (-3i32).to_le_bytes().to_vec();
        record.extend(0xffff_ffff_8000_0010u64.to_le_bytes());
        record.extend(b"ab\0z");
        record.extend((28u32 | (6 << 16)).to_le_bytes());
        record.extend((34u32 | (4 << 16)).to_le_bytes());
        record.extend([7, 0, 8, 0]);
        record.extend(b"hello\0\x01\x02\x03\x04");
        record
    }

    fn print_format(print_fmt: &str) -> Option<PrintFormat> {
        let text = format!("{FIELDS}\nprint fmt: {print_fmt}\n");
        PrintFormat::parse(&event_format(&text).unwrap(), Machine::little_64(true))
    }

    fn printed(print_fmt: &str, record: &[u8]) -> String {
        let names = Names::parse("ffffffff80000000 T start\nffffffff90000000 T end\n", "");
        let mut out = String::new();
        print_format(print_fmt).unwrap().print(record, Machine::little_64(true), &names, &mut out);
        out
    }

    #[test]
    fn fields_texts_and_arrays_are_printed() {
        let all = r#""%d %llu %s|%s|%s|%x", REC->a, REC->b, REC->c, __get_str(d),
            __print_array(__get_dynamic_array(e), __get_dynamic_array_len(e) / sizeof(u16), sizeof(u16)), REC->f[1]"#;
        let expected = "-3 18446744071562067984 ab|hello|513 1027|8";
        assert_eq!(printed(&all.replace('\n', " "), &record()), expected);
        assert_eq!(
            printed(r#""%pS %ps %p", REC->b, (void *)REC->b, REC->b"#, &record()),
            "start+0x10 start 0xffffffff80000010"
        );
        let hex =
            r#""%s %s %*phC", __print_hex(REC->c, 2), __print_hex_str(REC->c, sizeof(REC->c)), 2, REC->c"#;
        assert_eq!(printed(hex, &record()), "61 62 6162007a 61:62");
    }

    #[test]
    fn flags_symbols_and_conditions_are_computed() {
        let symbol = r#""%s %s", __print_symbolic(REC->f[0], { 7, "seven" }, {8, "eight"}), __print_symbolic(REC->a + 4, { 0, "no" })"#;
        assert_eq!(printed(symbol, &record()), "seven 0x1");
        let flags = r#""%s", __print_flags(REC->f[0] | 16, "|", { (1 << 0), "one" }, { 2, "two" }, { UNKNOWN, "?" })"#;
        assert_eq!(printed(flags, &record()), "one|two|0x14");
        let condition = r#""%s%c%u", REC->a < 0 ? "minus" : "plus", '!', (unsigned char)REC->a >> 4 & 3"#;
        assert_eq!(printed(condition, &record()), "minus!3");
        assert_eq!(printed(r#""%d", (REC->b >= -9ULL) || !(2ULL > -9ULL)"#, &record()), "1");
        assert_eq!(
            printed(r#""%d", *(u8 *)__get_dynamic_array(e) + ((u8 *)__get_dynamic_array(e))[3]"#, &record()),
            "5"
        );
    }

    // As Linux 6.18 writes a mask of memory allocation.
    #[test]
    fn brackets_casts_and_operators_of_a_real_format_are_read() {
        let mask = "( unsigned long)(((((((( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))) | (( gfp_t)((((1UL))) << (6))))\
            | (( gfp_t)0)) | (( gfp_t)((((1UL))) << (18)))) & ~(( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))))))";
        let format =
            format!("\"%s\", (REC->a) ? __print_flags(REC->a, \"|\", {{{mask}, \"MASK\"}}) : \"none\"");
        assert_eq!(printed(&format, &record()), "MASK|0xfffffffffffbffbd");
        assert_eq!(
            printed(r#""%llu", (((u64)(REC)->a << 32) | (REC)->f[0])"#, &record()),
            "18446744060824649735"
        );
    }

    #[test]
    fn a_record_that_is_too_short_shows_a_question_mark() {
        assert_eq!(printed(r#""%d %s", REC->a, __get_str(d)"#, &record()[..20]), "-3 ?");
    }

    #[test]
    fn what_is_not_an_expression_is_refused() {
        for bad in [
            r#""%d", ({ int x = 1; x; })"#,
            r#""%d", jiffies_to_msecs(REC->a)"#,
            r#""%d", REC->gone"#,
            r#""%d", REC->a REC->b"#,
            "REC->a",
            "",
        ] {
            assert_eq!(print_format(bad), None, "{bad}");
        }
    }

    // Untrusted input: unlimited brackets and operators must not overflow the stack.
    #[test]
    fn an_expression_without_end_is_refused() {
        for (open, close) in
            [("(", ")"), ("-", ""), ("1+", ""), ("1?1:", ""), ("(int)", ""), ("REC->f[", "]")]
        {
            let endless = format!("\"%d\", {}1{}", open.repeat(200_000), close.repeat(200_000));
            assert_eq!(print_format(&endless), None, "{open}");
        }
        let deep = format!("\"%d\", {}7{}", "(".repeat(30), ")".repeat(30));
        assert!(print_format(&deep).is_some());
    }
}
