//! docs/tables.md is what the model says of its tables, and the session of its views.

use std::{env, fmt::Write, fs, path::Path};

use sigmund_model::tables::{ALL, OPTIONAL};

const HEAD: &str = "\
# Tables of a super-trace

A super-trace is a directory with a folder for each table, in Parquet. `sigmund sql` has each of them under its name, with a
column `X_ns` beside each `X_tick`; `raw_NAME` is such a table as it is stored. `_tick` are ticks of the clock of the recording,
exact. NULL means that a value is not known, or that there is none. Tables that `--tables` of `merge` and `record` can leave
out are marked *optional*.

This page is written by a test: `SIGMUND_WRITE_DOCS=1 cargo test --workspace --test it tables_doc`.
";

fn page() -> String {
    let mut page = HEAD.to_string();
    for table in ALL {
        let is_optional = OPTIONAL.iter().any(|optional| optional.name == table.name);
        let mark = if is_optional { " *(optional)*" } else { "" };
        let _ = write!(
            page,
            "\n## {}\n\n{}{mark}\n\n| column | type | |\n|---|---|---|\n",
            table.name, table.doc
        );
        for column in table.columns {
            let nullable = if column.nullable { ", NULL" } else { "" };
            let ty = format!("{:?}", column.ty);
            let doc = column.doc.replace('|', "\\|");
            let _ = writeln!(page, "| `{}` | {ty}{nullable} | {doc} |", column.name);
        }
    }
    page
}

#[test]
fn the_page_of_tables_is_what_the_model_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tables.md");
    if env::var_os("SIGMUND_WRITE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    assert_eq!(written, page(), "docs/tables.md: write it again with SIGMUND_WRITE_DOCS=1");
}
