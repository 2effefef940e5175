//! The answers are compared with those of DataFusion's own grouping.

use arrow::{
    array::{
        ArrayRef, AsArray, DictionaryArray, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray,
    },
    datatypes::{Int8Type, Int32Type},
    util::{
        display::{ArrayFormatter, FormatOptions},
        pretty::pretty_format_batches,
    },
};
use datafusion::{datasource::MemTable, execution::SessionStateBuilder, prelude::SessionContext};
use proptest::{collection::vec, option, prelude::*};

use super::{groups::ROWS, *};

/// The words of a dictionary, of which some occur twice and some are NULL, or none if all rows are NULL, and the places of those that the rows have.
type Words = (Vec<Option<&'static str>>, Vec<Option<usize>>);

fn words(rows: usize) -> impl Strategy<Value = Words> {
    let word = option::weighted(0.9, prop::sample::select(vec!["", "a", "b", "request", "sys_read", "ü"]));
    (vec(word, 0..7), vec(option::weighted(0.9, 0..100_usize), rows)).prop_map(|(words, mut places)| {
        places.iter_mut().for_each(|place| *place = place.and_then(|place| place.checked_rem(words.len())));
        (words, places)
    })
}

fn batch() -> impl Strategy<Value = RecordBatch> {
    let columns = |rows| (words(rows), words(rows), words(rows), vec(option::of(-9..9_i64), rows));
    (0..40_usize).prop_flat_map(columns).prop_map(|(a, b, c, n)| {
        let small = |(words, places): Words| {
            let keys: Int8Array = places.iter().map(|place| place.map(|place| place as i8)).collect();
            Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(StringArray::from(words)))) as ArrayRef
        };
        of_columns([large(a), large(b), small(c), Arc::new(Int64Array::from(n))])
    })
}

fn large((words, places): Words) -> ArrayRef {
    let keys: Int32Array = places.iter().map(|place| place.map(|place| place as i32)).collect();
    Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(words))))
}

fn of_columns(columns: [ArrayRef; 4]) -> RecordBatch {
    let named = ["a", "b", "c", "n"].into_iter().zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

/// The rows of an answer, sorted; and the plan.
async fn asked(
    session: &SessionContext,
    partitions: &[Vec<RecordBatch>],
    query: &str,
) -> (Vec<String>, String) {
    let schema = partitions.iter().flatten().next().unwrap().schema();
    let table = MemTable::try_new(schema, partitions.to_vec()).unwrap();
    session.deregister_table("t").unwrap();
    session.register_table("t", Arc::new(table)).unwrap();
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in session.sql(query).await.unwrap().collect().await.unwrap() {
        let cells: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| {
                cells.iter().map(|cells| cells.value(row).to_string()).collect::<Vec<_>>().join(" ")
            }),
        );
    }
    rows.sort();
    let plan = session.sql(&format!("EXPLAIN {query}")).await.unwrap().collect().await.unwrap();
    (rows, pretty_format_batches(&plan).unwrap().to_string())
}

/// As ours, without this rule.
fn plain() -> SessionContext {
    let state = crate::session::session(None).unwrap().state();
    let rules =
        state.physical_optimizers().iter().filter(|rule| rule.name() != "GroupByWords").cloned().collect();
    SessionContext::new_with_state(
        SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build(),
    )
}

/// Compares the answers with those without the rule.
fn compare(memory: Option<usize>, partitions: &[Vec<RecordBatch>], query: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (expected, plan) = asked(&plain(), partitions, query).await;
        assert!(!plan.contains("GroupWordsExec"), "{plan}");
        let (answer, plan) = asked(&crate::session::session(memory).unwrap(), partitions, query).await;
        assert!(plan.contains("GroupWordsExec"), "{plan}");
        assert_eq!(answer, expected, "{query}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn groups_are_those_of_datafusion(
        one in vec(batch(), 1..5),
        other in vec(batch(), 0..5),
        query in prop::sample::select(vec![
            "SELECT a, count(*), count(n), sum(n), min(n), avg(n), count(DISTINCT n), max(c) FROM t GROUP BY a",
            "SELECT c, sum(n) FILTER (WHERE n % 2 = 0), count(*) FILTER (WHERE a = 'b') FROM t GROUP BY c",
            "SELECT DISTINCT b FROM t",
            "SELECT DISTINCT c, a FROM t",
            "SELECT count(*), b, a, sum(n) FROM t WHERE n <> 3 GROUP BY a, b",
            "SELECT a, b, c, min(n), max(n) FROM t GROUP BY c, b, a",
            "SELECT a, b, count(*) AS many FROM t GROUP BY b, a, c, b HAVING count(*) > 1",
        ]),
    ) {
        compare(None, &[one, other], query);
    }
}

#[test]
fn many_words_in_large_batches_and_little_memory() {
    // More words than are kept at once, in batches of more rows than are grouped at once.
    let texts: Vec<String> = (0..36_000).map(|n| format!("word {n}")).collect();
    let batch = |from: usize| {
        let rows = 3 * ROWS + 5;
        let words: StringArray = (0..rows).map(|row| Some(&texts[(from + row) % texts.len()])).collect();
        let keys =
            |factor: usize| (0..rows).map(|row| Some((row * factor % rows) as i32)).collect::<Int32Array>();
        let words: ArrayRef = Arc::new(words);
        let column = |factor| {
            Arc::new(DictionaryArray::<Int32Type>::new(keys(factor), Arc::clone(&words))) as ArrayRef
        };
        let numbers: Int64Array = (0..rows as i64).map(Some).collect();
        of_columns([column(1), column(7), column(1), Arc::new(numbers)])
    };
    let batches = |from: usize| (0..2).map(|n| batch(from + n * (3 * ROWS + 5))).collect::<Vec<_>>();
    let partitions = [batches(0), batches(1000)];
    for memory in [None, Some(12 << 20)] {
        compare(memory, &partitions, "SELECT a, count(*), sum(n), max(n) FROM t GROUP BY a");
        compare(memory, &partitions, "SELECT c, b, sum(n) FROM t GROUP BY b, c");
    }
}

#[test]
fn other_aggregations_stay() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let words = (vec![Some("x")], vec![Some(0)]);
    let column = || large(words.clone());
    let batch = of_columns([column(), column(), column(), Arc::new(Int64Array::from(vec![1]))]);
    assert_eq!(batch.column(0).as_any_dictionary().len(), 1);
    let session = crate::session::session(None).unwrap();
    for (query, answer) in [
        ("SELECT count(*) FROM t", &["1"][..]),
        ("SELECT a, n, count(*) FROM t GROUP BY a, n", &["x 1 1"]),
        ("SELECT a, count(*) FROM t GROUP BY ROLLUP (a)", &["NULL 1", "x 1"]),
        ("SELECT n, max(a) FROM t GROUP BY n", &["1 x"]),
    ] {
        let (rows, plan) =
            runtime.block_on(asked(&session, &[vec![batch.clone()], vec![batch.slice(0, 0)]], query));
        assert!(!plan.contains("GroupWordsExec"), "{plan}");
        assert_eq!(rows, answer, "{query}");
    }
}
