//! Arguments of `sigmund export`.

use std::path::PathBuf;

use clap::{
    Args, ValueEnum, ValueHint,
    builder::{PossibleValuesParser, TypedValueParser},
};
use sigmund_export::{
    ViewerFormat,
    tables::{RowFormat, TableFormat},
};
use sigmund_model::{Nanos, tables::Table};

use super::{DamageArgs, FilterArgs};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sigmund export demo.supertrace --format perfetto -o demo.pftrace\n  sigmund export \
    demo.supertrace --format paje --thread 15 --to 20ms -o demo.trace\n  sigmund export demo.supertrace --format csv \
    --table thread_states -o -\n\nExit status: 0 written, 1 written and empty, 2 error."
)]
pub(crate) struct ExportArgs {
    /// The super-trace.
    #[arg(value_name = "T", value_hint = ValueHint::DirPath)]
    pub(crate) trace: PathBuf,
    /// Format of the output.
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// The file, or for otf2 and ctf the folder, to write; - is standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) output: PathBuf,
    /// Overwrite it if it exists.
    #[arg(long)]
    pub(crate) force: bool,
    /// For viewers: merge or leave out what is shorter, and preserve the time spent in each state.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) coarse: Option<Nanos>,
    /// For csv, tsv, ndjson, arrow and parquet: the table; events by default.
    #[arg(long, value_name = "TABLE", value_parser = tables())]
    pub(crate) table: Option<&'static Table>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For ViTE and pj_dump.
    Paje,
    /// An archive (a folder) for Vampir and the Score-P tools.
    Otf2,
    /// For ui.perfetto.dev and trace_processor.
    Perfetto,
    /// Chrome's JSON, for chrome://tracing, Speedscope and others.
    Chrome,
    /// CTF 1.8 (a folder), for babeltrace2 and Trace Compass: events only.
    Ctf,
    /// A table, comma separated.
    Csv,
    /// A table, tab separated.
    Tsv,
    /// A table, one JSON object a line.
    Ndjson,
    /// A table as an Arrow IPC file.
    Arrow,
    /// A table as one Parquet file.
    Parquet,
}

/// A viewer's format, or a table.
pub(crate) enum ExportKind {
    ViewerFormat(ViewerFormat),
    Table(TableFormat),
}

impl ExportFormat {
    pub(crate) fn kind(self) -> ExportKind {
        match self {
            ExportFormat::Paje => ExportKind::ViewerFormat(ViewerFormat::Paje),
            ExportFormat::Otf2 => ExportKind::ViewerFormat(ViewerFormat::Otf2),
            ExportFormat::Perfetto => ExportKind::ViewerFormat(ViewerFormat::Perfetto),
            ExportFormat::Chrome => ExportKind::ViewerFormat(ViewerFormat::Chrome),
            ExportFormat::Ctf => ExportKind::ViewerFormat(ViewerFormat::Ctf),
            ExportFormat::Csv => ExportKind::Table(TableFormat::Rows(RowFormat::Csv)),
            ExportFormat::Tsv => ExportKind::Table(TableFormat::Rows(RowFormat::Tsv)),
            ExportFormat::Ndjson => ExportKind::Table(TableFormat::Rows(RowFormat::Ndjson)),
            ExportFormat::Arrow => ExportKind::Table(TableFormat::Arrow),
            ExportFormat::Parquet => ExportKind::Table(TableFormat::Parquet),
        }
    }
}

fn tables() -> impl TypedValueParser<Value = &'static Table> {
    PossibleValuesParser::new(sigmund_model::tables::ALL.iter().map(|table| table.name))
        .map(|name| Table::named(&name).expect("one of those"))
}

pub(super) fn duration(text: &str) -> Result<Nanos, String> {
    match text.parse() {
        Ok(sigmund_query::Instant::Since(length)) if !text.starts_with('+') => Ok(length),
        _ => Err(format!("expected a length such as 20us or 1.5ms, found {text:?}")),
    }
}
