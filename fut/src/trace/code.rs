//! The 32 bits of an event's code.
//!
//! ```text
//! bit 31   30 ··· 28   27 ··· 0
//!    1   | place among the declarations of the Rust side, from 1
//!    0   | text      | number that a C program chose
//! ```
//! C programs choose their numbers themselves, and need not declare them. So that a text can be told from numbers
//! then, `text` says where it begins: 0 is "no text", 1 + n is "after n numbers".
//!
//! Records and declarations hold all of it. Tables and listings show the number alone: an event of Rust and one of C may
//! have the same, and are told apart by their names.

/// Codes of events that are declared in Rust have this bit.
pub const DECLARED_BIT: u32 = 1 << 31;
/// The largest number a C program may choose.
pub const MAX_C_CODE: u32 = (1 << 28) - 1;

const TEXT_SHIFT: u32 = 28;

/// The code of a C program's record that ends with a text after `numbers` numbers; at most 6.
#[inline(always)]
pub const fn code_with_text(code: u32, numbers: u32) -> u32 {
    code | (1 + numbers) << TEXT_SHIFT
}

/// A record's code as it was declared, and after how many numbers a text stands, if the record says so.
pub const fn split_code(code: u32) -> (u32, Option<u32>) {
    if code & DECLARED_BIT != 0 {
        return (code, None);
    }
    (code & MAX_C_CODE, (code >> TEXT_SHIFT).checked_sub(1))
}

/// The number of an event, as people see it.
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
