//! What would not fit, in 64 bits or in memory, is an error.

use crate::{
    asked::{answer, error},
    support::Little,
};
use serde_json::json;
use sigmund_sql::SuperTrace;

#[tokio::test]
async fn no_function_makes_more_than_a_batch_of_rows_may_have() {
    let trace = SuperTrace::open(Little::new().write()).await.unwrap();
    const ROWS: &str = "(SELECT value AS n FROM generate_series(1, 8192)) AS rows";
    for (expression, name) in [
        ("repeat('x', 1000000000)", "repeat"),
        ("repeat('x', (SELECT max(value) FROM generate_series(1, 100000)))", "repeat"),
        ("repeat('x', n * 10)", "repeat"),
        ("rpad('x', n * 10, 'y')", "rpad"),
        ("array_repeat(n, 100000)", "array_repeat"),
        ("range(n * 100)", "range"),
        ("range(0, n * 10)", "range"),
        ("generate_series(0, -1000000000, -10)", "generate_series"),
        (
            "generate_series(TIMESTAMP '1900-01-01', TIMESTAMP '2100-01-01', INTERVAL '1 microsecond')",
            "generate_series",
        ),
        ("range(DATE '0001-01-01' + CAST(n AS INT), DATE '9999-01-01', INTERVAL '1 millisecond')", "range"),
        ("array_resize(make_array(n), 100000)", "array_resize"),
        ("list_resize([1, 2], 1000000000)", "array_resize"),
        ("replace(repeat('a', 30000), 'a', repeat('b', 30000))", "replace"),
        ("replace(repeat('a', 1000), 'a', repeat('b', 9000 + n))", "replace"),
        ("regexp_replace(repeat('a', 30000), '.', repeat('b', 30000), 'g')", "regexp_replace"),
        ("regexp_replace(repeat('a', 9000 + n), '(.*)', repeat('\\1', 1000))", "regexp_replace"),
        ("array_to_string(range(0, 20000), repeat('x', 20000))", "array_to_string"),
        ("array_to_string(range(0, n / 2), repeat('x', 10000))", "array_to_string"),
        ("to_char(to_timestamp(n), repeat('%Y', 10000000))", "to_char"),
    ] {
        let error = error(&trace, &format!("SELECT count({expression}) FROM {ROWS}")).await;
        assert!(
            error.contains(&format!("{name}: expected a result of at most 256 MiB")),
            "{expression}: {error}"
        );
    }
    for (expression, expected) in [
        ("length(repeat('x', n))", "8192"),
        ("length(repeat('x', 30000))", "30000"),
        ("length(repeat('x', -1))", "0"),
        ("length(repeat(NULL, 1000000000))", ""),
        ("length(lpad('x', 100))", "100"),
        ("length(rpad('x', n))", "8192"),
        ("array_length(array_repeat(n, 100))", "100"),
        ("array_length(range(100))", "100"),
        ("array_length(range(0, 10000000, 100000))", "100"),
        ("array_length(array_resize(make_array(n), 100))", "100"),
        ("array_length(generate_series(DATE '2020-01-01', DATE '2020-12-31', INTERVAL '1 day'))", "366"),
        ("length(replace(repeat('x', n), 'xx', 'yyy'))", "12288"),
        ("length(regexp_replace(repeat('x', n % 100), 'x(x)', '\\1y\\1', 'g'))", "148"),
        (
            "array_length(generate_series(to_timestamp(1700000000), \
             CASE WHEN n > 5 THEN NULL ELSE to_timestamp(1700000000 + n) END, INTERVAL '1 second'))",
            "6",
        ),
        ("array_length(generate_series(to_timestamp(n), to_timestamp(n + 9), INTERVAL '1 second'))", "10"),
        // They could be too large, and are not.
        ("length(replace(repeat('x', n), 'y', repeat('y', 1000)))", "8192"),
        ("length(regexp_replace(repeat('x', n), 'y', repeat('y', 1000), 'g'))", "8192"),
        ("length(array_to_string(range(0, 100), ', '))", "388"),
        ("length(to_char(to_timestamp(n), '%Y'))", "4"),
    ] {
        let query = format!("SELECT max({expression}) FROM {ROWS}");
        assert_eq!(answer(&trace, &query).await, [expected], "{expression}");
    }
    // Constants, which are evaluated once and copied to each row.
    for expression in [
        "max(lpad('x', 100000))",
        "count(generate_series(0, -10000000, -10))",
        "max(CASE WHEN n > 5 THEN repeat('x', 40000) ELSE 'y' END)",
        "first_value(array_repeat('x', 10000))",
    ] {
        let error = error(&trace, &format!("SELECT {expression} FROM {ROWS}")).await;
        assert!(error.contains("expected at most 256 MiB in all, found"), "{expression}: {error}");
    }
    let window = error(&trace, &format!("SELECT max(lpad('x', 100000)) OVER () FROM {ROWS}")).await;
    assert!(window.contains("for each of 8192 rows"), "{window}");
    for copied in [
        format!("SELECT r, n FROM (SELECT range(1, 1000000) AS r) AS one CROSS JOIN {ROWS}"),
        format!("SELECT (SELECT range(1, 1000000)) AS r, n FROM {ROWS}"),
        "SELECT range(1, 1000000) AS r, unnest(range(1, 100000)) AS n".to_owned(),
    ] {
        let error = error(&trace, &copied).await;
        assert!(error.contains("expected at most 256 MiB in all, found"), "{copied}: {error}");
    }
    for (query, expected) in [
        (
            "SELECT count(*) FROM (SELECT unnest(range(1, 1000001)) AS n) AS t WHERE n > 9".to_owned(),
            "999991",
        ),
        ("SELECT length(repeat('x', 10000000))".to_owned(), "10000000"),
        (format!("SELECT max(length(repeat('x', 100000)) + n) FROM {ROWS}"), "108192"),
        (format!("SELECT count(*) FROM {ROWS} WHERE array_has(range(0, 100000, 2), n)"), "4096"),
    ] {
        assert_eq!(answer(&trace, &query).await, [expected], "{query}");
    }
    // 300 kB in each row: more than Arrow's arrays can have.
    let text = ["repeat('x', 30000)"; 10].join(" || ");
    let error = error(&trace, &format!("SELECT {text} || n AS text FROM {ROWS}")).await;
    assert!(error.contains("at most 2 GiB in one column"), "{error}");
}

#[tokio::test]
async fn arithmetic_of_integers_that_exceeds_64_bits_is_an_error() {
    let mut little = Little::new();
    little.info("tick_hz", 1e9);
    for ts_tick in 4..6 {
        little.row("active", json!({"ts_tick": ts_tick, "thread": 1, "lwp": 1, "cpu": 0}));
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    // One row whose values are known when the query is run only.
    let most = "(SELECT CAST(count(*) AS BIGINT) + 9223372036854775000 AS x, count(*) AS n FROM active) AS t";
    for query in [
        format!("SELECT x + 9000 FROM {most}"),
        format!("SELECT 1 + (x - -9000) % 7 FROM {most}"),
        format!("SELECT max(x * 2) FROM {most}"),
        format!("SELECT n FROM {most} WHERE x * n * 2 > 5"),
        "SELECT avg(ts_tick * 4611686018427387904) FROM active WHERE ts_tick > 3".to_owned(),
        "SELECT ts_tick FROM active WHERE ts_tick * 4611686018427387904 > 1 AND ts_tick > 3".to_owned(),
        format!("SELECT to_ns(CAST(x AS DOUBLE) * 1e9) FROM {most}"),
        "SELECT 9223372036854775807 + 1".to_owned(),
        "SELECT ts_tick * 4611686018427387904 AS x, count(*) FROM active GROUP BY 1".to_owned(),
        "SELECT ts_tick FROM active ORDER BY ts_tick * 4611686018427387904 LIMIT 1".to_owned(),
        "SELECT max(ts_tick * 4611686018427387904) OVER () FROM active".to_owned(),
        "SELECT count(*) FILTER (WHERE ts_tick * 4611686018427387904 > 0) FROM active".to_owned(),
        "SELECT count(DISTINCT ts_tick * 4611686018427387904) FROM active".to_owned(),
        "SELECT count(*) FROM active a JOIN active b ON a.thread = b.thread AND a.ts_tick * 4611686018427387904 > b.lwp"
            .to_owned(),
        "SELECT count(*) FROM active a WHERE EXISTS (SELECT 1 FROM active b WHERE a.ts_tick * 4611686018427387904 > b.lwp)"
            .to_owned(),
    ] {
        let message = error(&trace, &query).await;
        assert!(message.contains("within 64 bits"), "{query}: {message}");
    }
    for (query, words) in [
        (
            "SELECT (lwp + arrow_cast(2000000000, 'Int32')) * arrow_cast(2, 'Int32') FROM active",
            "within 32 bits",
        ),
        ("SELECT u64_bits(thread) - u64_bits(ts_tick) FROM active", "not negative, of unsigned numbers"),
    ] {
        let message = error(&trace, query).await;
        assert!(message.contains(words), "{query}: {message}");
    }
    let grouped = "SELECT ts_tick + 2, count(*) FROM active GROUP BY ROLLUP(ts_tick + 2) ORDER BY 1";
    assert_eq!(answer(&trace, grouped).await, ["6 1", "7 1", " 2"]);
    let sets = "SELECT ts_tick - 4, count(*) FROM active GROUP BY GROUPING SETS((ts_tick - 4, lwp), (lwp * 2)) ORDER BY 1";
    assert_eq!(answer(&trace, sets).await, ["0 1", "1 1", " 2"]);
    let named = trace.sql("SELECT ts_tick + 1, -ts_tick * 2 AS x FROM active LIMIT 1").await.unwrap();
    let text = named.to_text().await.unwrap();
    assert!(text.contains("active.ts_tick + Int64(1)") && text.contains("| -8 "), "{text}");
    let within =
        format!("SELECT x - 9223372036854775000 = n, (x - n) * 1.5 > x, 2 * n - 3 * n = -n FROM {most}");
    assert_eq!(answer(&trace, &within).await, ["true true true"]);
}

#[tokio::test]
async fn a_sum_of_integers_that_exceeds_64_bits_is_an_error() {
    let trace = SuperTrace::open(Little::new().write()).await.unwrap();
    let most = "(VALUES (1, 9223372036854775807), (1, 1), (2, 5), (2, -7), (3, NULL)) AS t(g, x)";
    for query in [
        format!("SELECT sum(x) AS s FROM {most} WHERE g = 1"),
        format!("SELECT g, sum(x) AS s FROM {most} GROUP BY g"),
        format!("SELECT sum(x) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM {most}"),
        "SELECT sum(u64_bits(x)) FROM (VALUES (-1), (-1)) AS t(x)".to_owned(),
        "SELECT x, sum(u64_bits(x)) FROM (VALUES (-1), (-1)) AS t(x) GROUP BY x".to_owned(),
    ] {
        let message = error(&trace, &query).await;
        assert!(message.contains("sum: expected a sum within 64 bits, found a larger one"), "{message}");
    }
    let within = format!(
        "SELECT g, sum(x), sum(x * 1.5), sum(DISTINCT x) FROM {most} WHERE g > 1 GROUP BY g ORDER BY g"
    );
    assert_eq!(answer(&trace, &within).await, ["2 -2 -3.0 -2", "3   "]);
    let window =
        format!("SELECT sum(x) OVER (ORDER BY x ROWS 1 PRECEDING) FROM {most} WHERE x < 9 ORDER BY x");
    assert_eq!(answer(&trace, &window).await, ["-7", "-6", "6"]);
    assert_eq!(answer(&trace, &format!("SELECT sum(x) FROM {most} WHERE g = 3")).await, [""]);
}
