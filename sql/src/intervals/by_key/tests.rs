//! Rows are compared with those of DataFusion's own sort.

use arrow::{
    array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray},
    compute::{SortOptions, concat_batches},
    datatypes::Int32Type,
    util::display::{ArrayFormatter, FormatOptions},
};
use datafusion::{
    datasource::memory::MemorySourceConfig,
    physical_expr::{LexOrdering, PhysicalSortExpr},
    physical_plan::{collect, expressions::col},
};
use proptest::{collection::vec, option, prelude::*};

use super::*;

/// Key, start, length, and the place of a word.
type Row = (Option<i64>, i64, i64, Option<usize>);

const WORDS: [&str; 4] = ["active", "stalled", "", "blocked"];

/// Each batch has its own dictionary, and keys that are numbers or words.
fn batch(rows: &[Row], has_words: bool) -> RecordBatch {
    let numbers: Int64Array = rows.iter().map(|row| row.0).collect();
    let texts: StringArray = rows.iter().map(|row| row.0.map(|key| format!("k{key}"))).collect();
    let key: ArrayRef = if has_words { Arc::new(texts.clone()) } else { Arc::new(numbers) };
    let from: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
    let to: Int64Array = rows.iter().map(|row| Some(row.1 + row.2)).collect();
    let mut words = WORDS;
    words.rotate_left(rows.len() % WORDS.len());
    let keys: Int32Array = rows.iter().map(|row| row.3.map(|place| place as i32)).collect();
    let word = DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(words.to_vec())));
    let columns = [
        ("key_0", key),
        ("interval_from", Arc::new(from) as ArrayRef),
        ("interval_to", Arc::new(to)),
        ("word", Arc::new(word)),
        ("text", Arc::new(texts)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn sort_of(batches: &[RecordBatch]) -> SortExec {
    let schema = batches[0].schema();
    let input = MemorySourceConfig::try_new_exec(&[batches.to_vec()], Arc::clone(&schema), None).unwrap();
    let by = |name: &str, descending| PhysicalSortExpr {
        expr: col(name, &schema).unwrap(),
        options: SortOptions { descending, nulls_first: false },
    };
    let order = [by("key_0", false), by("interval_from", false), by("interval_to", true)];
    SortExec::new(LexOrdering::new(order).unwrap(), input).with_preserve_partitioning(true)
}

/// All rows, and the first three cells of each in their order.
async fn rows_of(plan: Arc<dyn ExecutionPlan>, memory: Option<usize>) -> (Vec<String>, Vec<String>) {
    let context = crate::session::session(memory).unwrap().task_ctx();
    let schema = plan.schema();
    let batches = collect(plan, context).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 8192));
    let all = concat_batches(&schema, &batches).unwrap();
    let options = FormatOptions::new().with_null("NULL");
    let cells: Vec<_> =
        all.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let row = |row: usize, width: usize| {
        cells[..width].iter().map(|cells| cells.value(row).to_string()).collect::<Vec<_>>().join(" ")
    };
    let order = (0..all.num_rows()).map(|number| row(number, 3)).collect();
    let mut whole: Vec<String> = (0..all.num_rows()).map(|number| row(number, 5)).collect();
    whole.sort();
    (whole, order)
}

fn compare(batches: &[RecordBatch], memory: Option<usize>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sort = sort_of(batches);
        let expected = rows_of(Arc::new(sort.clone()), None).await;
        let found = rows_of(Arc::new(SortByKeyExec::new(sort, 1)), memory).await;
        assert_eq!(found, expected);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_in_the_order_of_datafusion(
        rows in vec(vec((option::weighted(0.9, -2..3_i64), 0..20_i64, 0..9_i64, option::of(0..4_usize)), 0..30), 1..8),
        has_words in any::<bool>(),
        in_order in any::<bool>(),
    ) {
        let mut rows: Vec<Vec<Row>> = rows;
        if in_order {
            rows.iter_mut().enumerate().for_each(|(place, rows)| {
                rows.iter_mut().for_each(|row| row.1 += 20 * place as i64);
                rows.sort_by_key(|row| row.1);
            });
        }
        let batches: Vec<RecordBatch> = rows.iter().map(|rows| batch(rows, has_words)).collect();
        compare(&batches, None);
    }
}

#[test]
fn rows_that_do_not_fit_into_memory_are_sorted_all_the_same() {
    let row = |number: i64| (Some(number * 7 % 1000), number, 5, Some(number as usize % 4));
    let rows: Vec<Row> = (0..60_000).map(row).collect();
    let batches: Vec<RecordBatch> = rows.chunks(3000).map(|rows| batch(rows, false)).collect();
    for memory in [None, Some(24 << 20), Some(4 << 20)] {
        compare(&batches, memory);
    }
}
