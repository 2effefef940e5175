//! A table as text: the first column is left-aligned, all others are right-aligned.

/// Rows of cells under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: &[&str]) -> Table {
        Table { rows: vec![columns.iter().map(|column| (*column).to_string()).collect()] }
    }

    /// Adds a row. It may be shorter than the heading.
    pub(crate) fn row<Cell: Into<String>>(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a row with only a remark after its name.
    pub(crate) fn remark(&mut self, name: &str, remark: &str) {
        self.rows.push(vec![format!("{name}: {remark}")]);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            // A remark is the only other cell of its row, and may have any length.
            let rows = self.rows.iter().filter(|row| row.len() > 1);
            rows.filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line += &if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let mut table = Table::new(&["", "ns", "× fastest"]);
        table.row(["fut", "9.5", "0.25"]);
        table.row(["may", "138.0"]);
        table.remark("Go", "not installed");
        assert_eq!(
            table.to_string(),
            "        ns  × fastest\nfut    9.5       0.25\nmay  138.0\nGo: not installed\n"
        );
    }
}
