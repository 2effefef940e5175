//! The cost of encoding a row, here and with the writer of the `parquet` crate, for the same pages:
//! `cargo test --release -p sigmund-merge --lib encoding::cost -- --ignored --nocapture`.

use std::{fs, sync::Arc};

use parquet::{
    basic::{Compression, Encoding},
    data_type::Int64Type,
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};

use super::{
    column::{Cells, Filled},
    encoder::OpenGroup,
    properties::level,
};

const PAGE_ROWS: usize = 16 << 10;
const PAGES: usize = 16;
const ROUNDS: usize = 9;
/// The kernel updates its sums some hundred times a second. A measurement must last longer than that.
const ROW_GROUPS: usize = 20;

/// A column as the events of a traced program fill it: returns the value of a row, from its number and a random number.
type Value = fn(u64, u64) -> Option<i64>;

const COLUMNS: [(&str, Value); 3] = [
    // Some events of one LWP, then some of another.
    ("lwp", |row, _| Some(1000 + ((row / 6).wrapping_mul(0x9e37_79b9) % 160) as i64)),
    // Numbers, pointers, and often 0.
    ("arg", |_, chance| Some(if chance.is_multiple_of(3) { 0 } else { (chance % 1500) as i64 * 0x10_0010 })),
    ("ts_tick", |row, chance| Some((row * 4000 + chance % 4000) as i64)),
];

#[test]
#[ignore = "measures"]
fn a_column_costs_less_than_by_the_writer_of_parquet() {
    for (name, value) in COLUMNS {
        let pages: Vec<Vec<Option<i64>>> = pages(value);
        let mut costs: Vec<(f64, f64)> =
            (0..ROUNDS).map(|_| (ours(name, &pages), theirs(name, &pages))).collect();
        costs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (ours, theirs) = costs[ROUNDS / 2];
        println!("{name}: {ours:.1} ns a row, {theirs:.1} by parquet: {:.2}", ours / theirs);
    }
}

fn pages(value: Value) -> Vec<Vec<Option<i64>>> {
    let mut chance = 1u64;
    let mut row = |row: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        value(row as u64, chance >> 33)
    };
    (0..PAGES).map(|page| (page * PAGE_ROWS..(page + 1) * PAGE_ROWS).map(&mut row).collect()).collect()
}

fn file(name: &str) -> SerializedFileWriter<Vec<u8>> {
    let schema = parse_message_type(&format!("message table {{ optional int64 {name}; }}")).unwrap();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_write_batch_size(PAGE_ROWS)
        .set_data_page_row_count_limit(PAGE_ROWS);
    if name.ends_with("_tick") {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build())).unwrap()
}

/// Nanoseconds of CPU time per row.
fn ours(name: &str, pages: &[Vec<Option<i64>>]) -> f64 {
    let batch = |page: &Vec<Option<i64>>| {
        let mut filled = Filled::<Vec<i64>>::default();
        page.iter().for_each(|value| filled.push(*value));
        vec![Cells::Numbers(filled)]
    };
    let batches: Vec<_> = pages.iter().map(batch).collect();
    of_row_groups(name, |file| {
        let mut open = OpenGroup::new(Arc::new(file.schema_descr().clone()));
        batches.iter().for_each(|batch| open.append(batch).unwrap());
        let mut group = file.next_row_group().unwrap();
        for chunk in open.close().unwrap() {
            group.append_column(&chunk.bytes, chunk.close).unwrap();
        }
        group.close().unwrap();
    })
}

/// The same, by `ColumnWriter::write_batch`.
fn theirs(name: &str, pages: &[Vec<Option<i64>>]) -> f64 {
    let batch = |page: &Vec<Option<i64>>| -> (Vec<i64>, Vec<i16>) {
        let levels = page.iter().map(|value| i16::from(value.is_some()));
        (page.iter().copied().flatten().collect(), levels.collect())
    };
    let batches: Vec<_> = pages.iter().map(batch).collect();
    of_row_groups(name, |file| {
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        for (values, levels) in &batches {
            column.typed::<Int64Type>().write_batch(values, Some(levels), None).unwrap();
        }
        column.close().unwrap();
        group.close().unwrap();
    })
}

fn of_row_groups(name: &str, mut write: impl FnMut(&mut SerializedFileWriter<Vec<u8>>)) -> f64 {
    let mut file = file(name);
    let start = cpu_time();
    (0..ROW_GROUPS).for_each(|_| write(&mut file));
    (cpu_time() - start) as f64 / (ROW_GROUPS * PAGES * PAGE_ROWS) as f64
}

/// Nanoseconds that this thread has run (`/proc/thread-self/schedstat`). Independent of other load on the machine.
fn cpu_time() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap()
}
