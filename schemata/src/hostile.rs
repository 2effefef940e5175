//! Texts that are no valid schemata. Each is refused with its line and with what was expected. No control sequence of a
//! terminal becomes a name.

use crate::{MAX_LEN, Schema};

const QUESTION: &str = "[[question]]\ntext = \"What?\"\nmeasure = \"summary\"\n";

/// Parses a schema with a head of two lines and a question.
fn parse(middle: &str, question: &str) -> Result<Schema, String> {
    let text = format!("name = \"a\"\nabout = \"A.\"\n{middle}\n{question}");
    Schema::parse("my.toml", &text).map_err(|error| error.to_string())
}

#[track_caller]
fn is_refused(middle: &str, question: &str, words: &[&str]) {
    let error = parse(middle, question).unwrap_err();
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
}

#[test]
fn a_mistake_is_told_with_its_line_and_what_was_expected() {
    assert_eq!(parse("", QUESTION).unwrap().questions.len(), 1);
    is_refused("", "", &["my.toml: expected at least one [[question]]"]);
    is_refused("nmae = 3", QUESTION, &["my.toml:3: unknown field `nmae`", "expected", "`about`"]);
    is_refused(
        "[kernel]\nmachine = \"sched:sched_switch\"",
        QUESTION,
        &["my.toml:4: ", "expected a sequence"],
    );
    is_refused("[program]\nkeys = [7]", QUESTION, &["my.toml:4: ", "expected a string"]);
    is_refused(
        "[program]\nkeys = [\"lokcs\"]",
        QUESTION,
        &["my.toml:4: ", "found \"lokcs\"; nearest: locks"],
    );
    is_refused("name = \"b\"", QUESTION, &["my.toml:3: duplicate key"]);
    is_refused("[kernel", QUESTION, &["my.toml:3: "]);
    is_refused(
        "",
        &QUESTION.replace("summary", "sumary"),
        &["my.toml:6: ", "found \"sumary\"; nearest: summary"],
    );
    is_refused("", &format!("{QUESTION}by = \"colour\""), &["my.toml:7: ", "pattern", "found \"colour\""]);
    is_refused("", &format!("{QUESTION}top = 0"), &["my.toml:7: ", "expected 1 to 50 rows"]);
    is_refused("", &format!("{QUESTION}worst = -1"), &["my.toml:7: ", "expected u32"]);
    is_refused("", &format!("{QUESTION}subject = \"x\""), &["my.toml:7: ", "summary: expected no subject"]);
    is_refused("", &format!("{QUESTION}from = \"x\""), &["my.toml:7: ", "expected no from and to"]);
    is_refused("", &format!("{QUESTION}sql = \"SELECT 1\""), &["my.toml:7: ", "found both"]);
    is_refused("", "[[question]]\ntext = \"What?\"", &["my.toml:4: ", "found neither"]);
    is_refused("", &QUESTION.replace("summary", "explain"), &["my.toml:6: ", "explain: expected subject = "]);
    is_refused("", &QUESTION.replace("summary", "reactivity"), &["my.toml:6: ", "expected from and to"]);
    let pair = QUESTION.replace("summary", "explain");
    is_refused("", &format!("{pair}from = \"x\""), &["my.toml:7: ", "explain: expected both from and to"]);
    let both = format!("{pair}from = \"x\"\nto = \"y\"\nsubject = \"z\"");
    is_refused("", &both, &["my.toml:9: ", "explain: expected subject, or from and to, found both"]);
    let sql = "[[question]]\ntext = \"What?\"\nsql = \"SELECT 1\"\nby = \"name\"";
    is_refused("", sql, &["my.toml:7: ", "beside sql"]);
    is_refused("", &sql.replace("by", "sort"), &["my.toml:7: ", "ORDER BY"]);
}

#[test]
fn what_no_answer_can_have_is_refused() {
    // A schema selects no thread, so there is no life that could be the path.
    let path = QUESTION.replace("summary", "critical-path");
    is_refused("", &path, &["my.toml:6: critical-path: expected subject = \"SPAN\", or from and to"]);
    assert!(parse("", &format!("{path}subject = \"x\"")).is_ok());
    assert!(parse("", &format!("{path}from = \"x\"\nto = \"y\"")).is_ok());

    let states = QUESTION.replace("summary", "states");
    let columns = format!("{states}columns = [\"state\",\n\"totl\"]");
    is_refused("", &columns, &["my.toml:8: states: expected a column", "found \"totl\"; nearest: total"]);
    is_refused("", &format!("{states}sort = \"totl\""), &["my.toml:7: ", "nearest: total"]);
    let sorted = parse("", &format!("{states}sort = \"total\"\ncolumns = [\"total_tick\", \"pattern\"]"));
    assert_eq!(sorted.unwrap().questions[0].sort.as_deref(), Some("total"));
    // Answers that list the worst cases have other columns.
    let latency = QUESTION.replace("summary", "latency") + "columns = [\"waker\"]";
    is_refused("", &latency, &["found \"waker\""]);
    assert!(parse("", &format!("{latency}\nworst = 3")).is_ok());
}

#[test]
fn what_an_answer_needs_of_the_kernel_is_recorded() {
    let needs = |event: &str| format!("{QUESTION}needs = [\"{event}\"]");
    is_refused("", &needs("raw_syscalls:sys_enter"), &["my.toml:7: expected a tracepoint of [kernel]"]);
    let kernel = "[kernel]\nmachine = [\"irq:irq_handler_entry\"]\nprogram = [\"a:b?\"]";
    for event in ["irq:irq_handler_entry", "a:b", "sched:sched_switch", "an_event_of_the_program"] {
        assert!(parse(kernel, &needs(event)).is_ok(), "{event}");
    }
    is_refused(kernel, &needs("irq:irq_handler_exit"), &["nearest: irq:irq_handler_entry"]);
}

#[test]
fn a_recorded_schema_may_name_what_another_version_had() {
    let text = |more: &str| format!("name = \"a\"\nabout = \"A.\"\n{QUESTION}{more}");
    let old = text("columns = [\"totl\"]\nneeds = [\"a:b\"]");
    assert!(Schema::parse_recorded("t.supertrace", &old).is_ok());
    assert!(Schema::parse_recorded("t.supertrace", &text("top = 0")).is_err());
}

#[test]
fn what_is_parsed_elsewhere_keeps_its_line() {
    let kernel = "[kernel]\nmachine = [\n\"irq:irq_handler_entry\"]";
    let pair = QUESTION.replace("summary", "reactivity") + "from = \"x\"\nto = \"y\"";
    let schema = parse(kernel, &format!("{pair}\n[[question]]\ntext = \"b\"\nsql = \"SELECT 1\"")).unwrap();
    assert_eq!((schema.place.as_str(), schema.machine[0].line), ("my.toml", Some(5)));
    let crate::Asked::Measure { pair: Some((from, to)), .. } = &schema.questions[0].asked else { panic!() };
    assert_eq!((from.line, to.line, to.text.as_str()), (9, 10, "y"));
    let crate::Asked::Sql(query) = &schema.questions[1].asked else { panic!() };
    assert_eq!(query.line, 13);
}

#[test]
fn the_name_of_a_tracepoint_leads_nowhere_else() {
    for event in [
        "sched", "sched:", ":x", "../..:x", "a:..", "a/b:c", "a:b/c", "a:b:c", "a:b??", "a: b", "*:*",
        "a:b\\n",
    ] {
        let middle = format!("[kernel]\nprogram = [\"{event}\"]");
        is_refused(&middle, QUESTION, &["my.toml:4: expected SYSTEM:EVENT"]);
    }
}

#[test]
fn controls_are_no_part_of_any_text() {
    for name in ["", "A", "a b", "a\\u001b[31m", "a/b", "..", &"a".repeat(65)] {
        let text = format!("name = \"{name}\"\nabout = \"A.\"\n{QUESTION}");
        let error = Schema::parse("my.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with("my.toml:1: expected a name") && !error.contains('\x1b'), "{error:?}");
    }
    let control = "\\u001b]0;mine\\u0007";
    is_refused("", &QUESTION.replace("What?", control), &["my.toml:5: expected printable text"]);
    is_refused("", &format!("{QUESTION}columns = [\"{control}\"]"), &["my.toml:7: expected printable"]);
    is_refused("", &format!("{QUESTION}needs = [\"{control}\"]"), &["my.toml:7: expected printable"]);
    is_refused(&format!("[program]\nevents = [\"{control}\"]"), QUESTION, &["my.toml:4: expected printable"]);
    is_refused("", &QUESTION.replace("summary", control), &["my.toml:6: expected a measure"]);
    // A multi-line query may have line breaks; it is printed escaped, if at all.
    assert!(parse("", "[[question]]\ntext = \"What?\"\nsql = \"\"\"\nSELECT\n1\"\"\"").is_ok());
}

#[test]
fn what_is_huge_is_refused_before_it_is_read() {
    is_refused(
        &format!("# {}", "x".repeat(MAX_LEN as usize)),
        QUESTION,
        &["my.toml: expected at most 65536 bytes"],
    );
    let many = "\"a:b\",".repeat(201);
    is_refused(
        &format!("[kernel]\nmachine = [{many}]"),
        QUESTION,
        &["my.toml:4: expected at most 200 entries"],
    );
    is_refused(
        "",
        &QUESTION.replace("What?", &"x".repeat(201)),
        &["my.toml:5: expected 1 to 200 characters"],
    );
    is_refused("", &QUESTION.repeat(201), &["expected at most 200 entries"]);
    is_refused("", &format!("{QUESTION}by = {}", "[".repeat(30_000)), &["my.toml:7: "]);
    is_refused("", &format!("{QUESTION}top = 99999999999999999999"), &["my.toml:7: "]);
    let folder = std::env::temp_dir();
    assert!(Schema::read(&folder).unwrap_err().to_string().contains("expected a regular file"));
    assert!(Schema::read("/dev/zero".as_ref()).unwrap_err().to_string().contains("expected a regular file"));
    assert!(Schema::read("/no/such.toml".as_ref()).unwrap_err().to_string().starts_with("/no/such.toml: "));
}
