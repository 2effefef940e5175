//! What queries written for SQLite mean here, and what they are told.

use serde_json::json;
use sigmund_sql::SuperTrace;

use crate::{
    asked::{answer, error},
    support::Little,
};

/// DataFusion names a cast by what is cast, so these had one name twice.
#[tokio::test]
async fn a_value_and_its_cast_are_two_columns() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 100);
    for (tick, length, name) in [(100, 4, "a"), (110, 5, "b"), (120, 5, "b")] {
        let row =
            json!({"ts_tick": tick, "dur_tick": length, "lwp": 70, "kind": "span", "name": name, "depth": 0});
        little.row("spans", row);
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for (query, expected) in [
        ("SELECT sum(dur) a, sum(CAST(dur AS DOUBLE)) b FROM slice", vec!["14 14.0"]),
        (
            "SELECT avg(dur), percentile(dur, 50), percentile(CAST(dur AS DOUBLE), 50) FROM slice",
            vec!["4.666666666666667 5 5.0"],
        ),
        (
            "SELECT count(dur), count(CAST(dur AS VARCHAR)), count(dur::INT), count(TRY_CAST(dur AS INT)) FROM slice",
            vec!["3 3 3 3"],
        ),
        ("SELECT max(CAST(ts AS DOUBLE) / 4) a, max(ts / 4) b FROM slice", vec!["5.0 5"]),
        (
            "SELECT name FROM slice GROUP BY name HAVING sum(CAST(dur AS DOUBLE)) > 5 AND sum(dur) > 3",
            vec!["b"],
        ),
        (
            "SELECT name, sum(dur) a FROM slice GROUP BY name ORDER BY sum(CAST(dur AS DOUBLE)) DESC",
            vec!["b 10", "a 4"],
        ),
        (
            "SELECT dur, CAST(dur AS VARCHAR) || 'x' AS d, count(*) FROM slice GROUP BY dur, CAST(dur AS VARCHAR) ORDER BY 1",
            vec!["4 4x 1", "5 5x 2"],
        ),
        ("SELECT sum(dur) OVER () a, sum(CAST(dur AS DOUBLE)) OVER () b FROM slice LIMIT 1", vec!["14 14.0"]),
        (
            "SELECT name FROM slice WHERE CAST(ts AS DOUBLE) / 2 > CAST(5 AS INT) LIMIT CAST(1 AS INT)",
            vec!["b"],
        ),
        (
            "SELECT CAST(dur AS INT), dur FROM (SELECT DISTINCT CAST(dur AS VARCHAR) AS dur FROM slice) ORDER BY 1",
            vec!["4 4", "5 5"],
        ),
        ("SELECT count(DISTINCT CAST(dur AS VARCHAR)), count(DISTINCT dur) FROM slice", vec!["2 2"]),
        (
            "SELECT name FROM slice s WHERE CAST(dur AS BIGINT) = (SELECT min(CAST(dur AS BIGINT)) FROM slice t WHERE t.name = s.name) \
             AND EXISTS (SELECT 1 FROM slice u WHERE CAST(u.dur AS INT) > CAST(s.dur AS INT))",
            vec!["a"],
        ),
    ] {
        assert_eq!(answer(&trace, query).await, expected, "{query}");
    }
    let header = trace.sql("SELECT CAST(dur AS INT), name GLOB 'a*', max(ts, dur) FROM slice").await.unwrap();
    let names: Vec<String> = header.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["CAST(dur AS INT)", "name GLOB 'a*'", "max(ts, dur)"]);
    // The filter still reaches the file.
    let plan = answer(&trace, "EXPLAIN SELECT name FROM raw_spans WHERE CAST(dur_tick AS BIGINT) > 4")
        .await
        .join(" ");
    assert!(!plan.contains("typed") && plan.contains("pruning_predicate"), "{plan}");
}

#[tokio::test]
async fn numbers_are_conditions_and_exists_is_a_value() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 100);
    little.row("lwps", json!({"lwp": 70, "pid": 70, "name": "main", "ts_tick": 100}));
    little.row("lwps", json!({"lwp": 71, "pid": 70, "name": "work", "ts_tick": 100}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for (query, expected) in [
        ("SELECT name FROM thread WHERE is_main_thread", vec!["main"]),
        ("SELECT name FROM thread WHERE NOT is_main_thread AND utid > 0", vec!["work"]),
        ("SELECT name FROM thread t WHERE t.is_main_thread = TRUE OR utid = 5", vec!["main"]),
        ("SELECT CASE WHEN is_main_thread THEN 1 ELSE 2 END AS n FROM thread ORDER BY n", vec!["1", "2"]),
        ("SELECT iif(is_main_thread, name, 'other') AS n FROM thread ORDER BY n", vec!["main", "other"]),
        (
            "SELECT EXISTS (SELECT 1 FROM thread WHERE utid > 70), NOT EXISTS (SELECT 1 FROM thread)",
            vec!["true false"],
        ),
        (
            "SELECT name, EXISTS (SELECT * FROM thread u WHERE u.utid = t.utid AND u.name = 'main') AS x FROM thread t ORDER BY name",
            vec!["main true", "work false"],
        ),
        (
            "SELECT EXISTS (SELECT name, count(*) FROM thread GROUP BY name HAVING count(*) > 1)",
            vec!["false"],
        ),
        (
            "SELECT group_concat(name), total(utid), total(upid + NULL) FROM (SELECT * FROM thread ORDER BY utid)",
            vec!["main,work 141.0 0.0"],
        ),
    ] {
        assert_eq!(answer(&trace, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn errors_say_what_to_write_instead() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9).info("first_tick", 100);
    little.row("lwps", json!({"lwp": 70, "pid": 70, "name": "main", "ts_tick": 100}));
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for (query, said) in [
        ("SELECT utid FROM thread WHERE name = \"main\"", "A text is in single quotes: 'main'."),
        ("SELECT 1 / (utid - utid) FROM thread", "`a / nullif(b, 0)` is NULL where b is 0"),
        ("DESCRIBE nobody.events", "expected the name of a super-trace before the dot, found `nobody`"),
    ] {
        let error = error(&trace, query).await;
        assert!(error.contains(said), "{query}: {error}");
    }
    let error = error(&trace, "SELECT nothing FROM thread").await;
    assert!(!error.contains("quotes"), "{error}");
}
