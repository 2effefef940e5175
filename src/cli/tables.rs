//! Which optional tables a merge writes.

use sigmund_model::tables::OPTIONAL;

/// The names of the optional tables that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOutTables(pub(crate) Vec<String>);

/// Parses the tables to write, such as `syscalls,locks`, or `none`. Returns the other tables.
pub(crate) fn left_out_tables(text: &str) -> Result<LeftOutTables, String> {
    let written: Vec<&str> =
        if text == "none" { Vec::new() } else { text.split(',').map(str::trim).collect() };
    let names = || OPTIONAL.iter().map(|table| table.name);
    if let Some(unknown) = written.iter().find(|name| !names().any(|known| known == **name)) {
        let known: Vec<&str> = names().collect();
        return Err(format!("expected none, or names of {}, found {unknown:?}", known.join(", ")));
    }
    let left_out = names().filter(|name| !written.contains(name));
    Ok(LeftOutTables(left_out.map(String::from).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_left_out() {
        assert_eq!(left_out_tables("none").unwrap().0.len(), OPTIONAL.len());
        let others = left_out_tables("syscalls, locks").unwrap().0;
        assert_eq!(others, ["wakeups", "interrupts", "spans", "counters", "processes"]);
        assert!(left_out_tables("events").unwrap_err().contains("wakeups, interrupts"));
    }
}
