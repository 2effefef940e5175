//! The 32 bits of an event's code.
//!
//! ```text
//! bit 31   30 ··· 28   27 ··· 0
//!    1   | index of the declaration in Rust, from 1
//!    0   | text      | number chosen by a C program
//! ```
//! C programs choose their numbers themselves, and need not declare them. `text` makes it possible to distinguish a
//! text from numbers without a declaration. It contains the position of the text: 0 means "no text", 1 + n means "after
//! n numbers".
//!
//! Records and declarations contain all bits. Tables and listings show only the number. An event of Rust and one of C
//! may have the same number; they are distinguished by name.

/// Set in the codes of events that are declared in Rust.
pub const DECLARED_BIT: u32 = 1 << 31;
/// The largest number a C program may choose.
pub const MAX_C_CODE: u32 = (1 << 28) - 1;

const TEXT_SHIFT: u32 = 28;

/// The code of a C program's record that ends with a text after `numbers` numbers. There are at most 6 of them.
#[inline(always)]
pub const fn code_with_text(code: u32, numbers: u32) -> u32 {
    code | (1 + numbers) << TEXT_SHIFT
}

/// The declared code of a record. Also the number of numbers before its text, if the code contains that.
pub const fn split_code(code: u32) -> (u32, Option<u32>) {
    if code & DECLARED_BIT != 0 {
        return (code, None);
    }
    (code & MAX_C_CODE, (code >> TEXT_SHIFT).checked_sub(1))
}

/// The number of an event for display.
pub const fn shown_code(code: u32) -> u32 {
    code & !DECLARED_BIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_keeps_its_number_and_where_its_text_is() {
        assert_eq!(split_code(0x102), (0x102, None));
        assert_eq!(split_code(code_with_text(0x102, 0)), (0x102, Some(0)));
        assert_eq!(split_code(code_with_text(MAX_C_CODE, 6)), (MAX_C_CODE, Some(6)));
        assert_eq!(split_code(DECLARED_BIT | 5), (DECLARED_BIT | 5, None));
        assert_eq!((shown_code(DECLARED_BIT | 5), shown_code(0x102)), (5, 0x102));
    }
}
