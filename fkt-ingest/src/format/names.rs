//! Names for addresses in records: functions (kallsyms), and formats of `trace_printk` (printk formats).

/// Both, by address.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Sorted by address.
    symbols: Vec<(u64, Box<str>)>,
    printk: Vec<(u64, Box<str>)>,
}

impl Names {
    /// From the text of `/proc/kallsyms` (`ffffffff81000000 T _text`) and of `printk_formats`
    /// (`0xffffffff82000000 : "max %d\n"`). Lines that are neither are skipped.
    pub(crate) fn parse(kallsyms: &str, printk_formats: &str) -> Names {
        let mut symbols: Vec<_> = kallsyms.lines().filter_map(symbol).collect();
        symbols.sort_by_key(|(address, _)| *address);
        let mut printk: Vec<_> = printk_formats.lines().filter_map(printk_format).collect();
        printk.sort_by_key(|(address, _)| *address);
        Names { symbols, printk }
    }

    /// The function at this address, and the offset in it.
    pub(crate) fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let at = self.symbols.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let (start, name) = self.symbols.get(at)?;
        // An address after the last symbol may be anything, because the end of the last function is unknown.
        (at + 1 < self.symbols.len() || *start == address).then(|| (&**name, address - start))
    }

    /// The format at this address.
    pub(crate) fn printk(&self, address: u64) -> Option<&str> {
        let at = self.printk.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        self.printk.get(at).map(|(_, format)| &**format)
    }
}

fn symbol(line: &str) -> Option<(u64, Box<str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let (kind, name) = (words.next()?, words.next()?);
    // Mapping symbols of ARM are not functions; absolute symbols are not addresses. 0 is what unprivileged readers get.
    let is_code = !name.starts_with('$') && !matches!(kind, "A" | "a") && address != 0;
    is_code.then(|| (address, name.into()))
}

fn printk_format(line: &str) -> Option<(u64, Box<str>)> {
    let (address, format) = line.split_once(':')?;
    let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
    let format = format.trim().trim_start_matches('"').trim_end_matches('"');
    let format = format.replace("\\n", "").replace("\\t", "\t").replace("\\\"", "\"").replace("\\\\", "\\");
    Some((address, format.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_within_the_function_that_begins_before_it() {
        let names = Names::parse("ffff2000 t late [mod]\nffff1000 T early\nno line\nffff3000 T end\n", "");
        assert_eq!(names.symbol(0xffff_1010), Some(("early", 0x10)));
        assert_eq!(names.symbol(0xffff_2000), Some(("late", 0)));
        assert_eq!((names.symbol(0xffff_0000), names.symbol(0xffff_3001)), (None, None));
    }

    #[test]
    fn a_printk_format_is_found_by_its_address_alone() {
        let names = Names::parse("", "0xffff8200 : \"max \\\"%d\\\"\\n\"\n");
        assert_eq!((names.printk(0xffff_8200), names.printk(1)), (Some("max \"%d\""), None));
    }
}
