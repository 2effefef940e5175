//! C's types, reduced to the size and the sign of a number.

use crate::format::machine::Machine;

/// The type of a cast, or of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CType {
    /// Size in bytes; 0 if the type is unknown.
    pub(crate) size: u8,
    pub(crate) signed: bool,
    /// Whether it is a pointer to that type.
    pub(crate) pointer: bool,
}

impl CType {
    /// From the words of a declaration: `const unsigned int *`.
    pub(crate) fn parse(text: &str, machine: Machine) -> CType {
        let pointer = text.contains('*');
        let text = text.replace('*', " ");
        let words: Vec<&str> =
            text.split_whitespace().filter(|w| !matches!(*w, "const" | "volatile")).collect();
        let (size, signed) = size_and_sign(&words, machine.long_size);
        CType { size, signed, pointer }
    }

    /// Whether these words can only be a type.
    pub(crate) fn is_type(words: &[&str], machine: Machine) -> bool {
        let words: Vec<&str> = words.iter().copied().filter(|w| *w != "const").collect();
        match words.first() {
            Some(&("struct" | "enum" | "union" | "void")) => true,
            Some(word) if words.len() == 1 && word.ends_with("_t") => true,
            Some(_) => size_and_sign(&words, machine.long_size).0 != 0,
            None => false,
        }
    }
}

fn size_and_sign(words: &[&str], long: u8) -> (u8, bool) {
    if let [word] = words
        && let Some(named) = named(word, long)
    {
        return named;
    }
    if words.first() == Some(&"enum") {
        return (4, false);
    }
    let basic = |w: &&str| matches!(*w, "unsigned" | "signed" | "int" | "long" | "short" | "char");
    if words.is_empty() || !words.iter().all(basic) {
        return (0, true);
    }
    let signed = !words.contains(&"unsigned");
    let longs = words.iter().filter(|w| **w == "long").count();
    let size = match longs {
        _ if words.contains(&"char") => 1,
        _ if words.contains(&"short") => 2,
        0 => 4,
        1 => long,
        _ => 8,
    };
    (size, signed)
}

fn named(word: &str, long: u8) -> Option<(u8, bool)> {
    let digits = |prefix: &str, suffix: &str| {
        let bits: u8 = word.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()?;
        matches!(bits, 8 | 16 | 32 | 64).then_some(bits / 8)
    };
    let unsigned = digits("u", "")
        .or(digits("__u", ""))
        .or(digits("uint", "_t"))
        .or(digits("__le", ""))
        .or(digits("__be", ""));
    let signed = digits("s", "").or(digits("__s", "")).or(digits("int", "_t"));
    Some(match word {
        _ if unsigned.is_some() => (unsigned?, false),
        _ if signed.is_some() => (signed?, true),
        "bool" | "_Bool" => (1, false),
        "size_t" | "uintptr_t" | "ulong" => (long, false),
        "ssize_t" | "ptrdiff_t" | "intptr_t" => (long, true),
        "gfp_t" | "uint" | "dev_t" | "uid_t" | "gid_t" | "fmode_t" | "slab_flags_t" => (4, false),
        "pid_t" | "key_serial_t" => (4, true),
        "umode_t" | "ushort" => (2, false),
        "sector_t" | "blkcnt_t" | "dma_addr_t" | "phys_addr_t" | "resource_size_t" => (8, false),
        "loff_t" | "ktime_t" | "time64_t" => (8, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_machine() {
        let machine = Machine::little_64(true);
        let parse = |text| {
            let CType { size, signed, pointer } = CType::parse(text, machine);
            (size, signed, pointer)
        };
        assert_eq!(parse("unsigned long"), (8, false, false));
        assert_eq!(parse("long unsigned int"), (8, false, false));
        assert_eq!(parse("const char *"), (1, true, true));
        assert_eq!(parse("u8"), (1, false, false));
        assert_eq!(parse("struct page"), (0, true, false));
        assert_eq!(CType::parse("long", Machine { long_size: 4, ..machine }).size, 4);
        assert!(CType::is_type(&["unsigned", "int"], machine) && CType::is_type(&["gfp_t"], machine));
        assert!(!CType::is_type(&["REC"], machine));
    }
}
