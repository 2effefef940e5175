//! docs/measures.md is what the measures say of themselves: question, definition, columns.

use std::{env, fmt::Write, fs, path::Path};

use sigmund_measures::{ALL, By, Column, Measure};
use sigmund_query::{MeasureOptions, measure_columns};

use crate::sigmund::Sigmund;

const HEAD: &str = "\
# Measures

Each measure is a flag of `sigmund` (`--critical-path`) and a table function of `sigmund sql` (`critical_path()`);
[questions.md](questions.md) shows what they print. `sigmund --help` and its man page have the same definitions, and
`sigmund sql T --schema critical_path` the columns as they are in SQL.

The filters apply to all measures. The *window* is from `--from` to `--to`, whose tick is in it, too, or the whole trace. Rows about one user
thread have the columns `thread` and `name`. In a trace without user threads, and with `--by lwp`, these are `lwp` and
`name`; with `--by process`, `pid` and `name`; with `--by name` and `--by pattern`, only `name`. `X_tick` is exact, in
ticks. SQL also has a column `X_ns` for each, and human format shows it as `X`, with its unit. NULL (an empty cell)
means that a value is not known, or that there is none.

This page is written by a test: `SIGMUND_WRITE_DOCS=1 cargo test --workspace --test it measures_doc`.
";

fn page() -> String {
    let mut page = HEAD.to_string();
    for measure in ALL {
        let _ = write!(
            page,
            "\n## {}\n\n**{}**\n\n{}\n\n",
            measure.name,
            in_markdown(measure.question),
            in_markdown(measure.definition.trim_end())
        );
        let columns = columns(measure, None, 0);
        write_table(&mut page, &columns);
        let grouped = self::columns(measure, Some(By::Name), 0);
        if let Some(sentence) = sentence_on_groups(&columns, &grouped) {
            let _ = write!(page, "\n{sentence}\n");
        }
        let of_cases = self::columns(measure, None, 1);
        if of_cases != columns {
            page += "\nWith `--worst N` a row is one case:\n\n";
            write_table(&mut page, &of_cases);
        }
    }
    page
}

fn columns(measure: &Measure, by: Option<By>, worst: usize) -> Vec<Column> {
    let columns = measure_columns(measure, true, &MeasureOptions { by, worst, ..MeasureOptions::default() });
    assert!(!columns.is_empty(), "{}", measure.name);
    columns
}

fn write_table(page: &mut String, columns: &[Column]) {
    *page += "| column | |\n|---|---|\n";
    for column in columns {
        let _ = writeln!(page, "| `{}` | {} |", column.name, in_markdown(&column.doc));
    }
}

/// How columns differ with `--by`, where rows are not of one thread anyway.
fn sentence_on_groups(columns: &[Column], grouped: &[Column]) -> Option<String> {
    if columns == grouped || columns[0].name == "thread" {
        return None;
    }
    let missing = columns.iter().filter(|column| !grouped.contains(column));
    let missing: Vec<String> = missing.map(|column| format!("`{}`", column.name)).collect();
    let replaced = match missing.is_empty() {
        true => String::new(),
        false => format!(", in place of {}", missing.join(" and ")),
    };
    Some(format!("With `--by name`, `{}` is the first column{replaced}.", grouped[0].name))
}

/// A text as one cell or paragraph, outside of code.
fn in_markdown(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let escaped = parts.map(|(place, part)| match place % 2 {
        0 => part.replace('|', "\\|").replace('<', "\\<").replace('*', "\\*"),
        _ => part.replace('|', "\\|"),
    });
    escaped.collect::<Vec<_>>().join("`")
}

#[test]
fn the_page_of_measures_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measures.md");
    if env::var_os("SIGMUND_WRITE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page(), "docs/measures.md: write it again with SIGMUND_WRITE_DOCS=1");
}

#[test]
fn the_long_help_and_the_man_page_have_the_definitions() {
    let sigmund = Sigmund::new();
    // Without line breaks, and without what roff escapes.
    let letters = |text: &str| -> String {
        text.replace("\\*(Aq", "'").chars().filter(|character| character.is_alphanumeric()).collect()
    };
    let [short, long, man] = ["-h", "--help", "man"].map(|word| letters(&sigmund.run([word]).found()));
    for measure in ALL {
        let definition = letters(measure.definition);
        assert!(long.contains(&definition) && man.contains(&definition), "{}", measure.name);
        assert!(!short.contains(&definition), "{}", measure.name);
    }
}
