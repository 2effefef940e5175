//! How one asks: the help by question, mistakes in words, every measure in every format and of traces without user threads.

use serde_json::{Map, Value};
use sigmund_measures::{ALL, Measure, Subject};

use crate::{sigmund::Sigmund, views::listing};

type Row = Map<String, Value>;

/// The flag of a measure, with events of the listing if it is about pairs.
fn flags(measure: &Measure) -> Vec<String> {
    let pair = ["sched_waking", "sched_switch"].map(String::from);
    let flag = format!("--{}", measure.name);
    match measure.subject {
        Subject::None | Subject::Optional(_) | Subject::Required(_) => vec![flag],
        Subject::Pair | Subject::RequiredOrPair(_) | Subject::OptionalOrPair(_) => {
            [vec![flag], pair.to_vec()].concat()
        }
    }
}

fn asked(sigmund: &Sigmund, measure: &Measure, options: &[&str]) -> String {
    let mut words = flags(measure);
    words.extend(options.iter().map(ToString::to_string));
    let reported = sigmund.run(&words);
    assert!(matches!(reported.status, 0 | 1), "{words:?}: {reported:?}");
    reported.stdout
}

fn rows(sigmund: &Sigmund, measure: &Measure, options: &[&str]) -> Vec<Row> {
    let json = asked(sigmund, measure, &[options, &["--format", "json"]].concat());
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{}: {error}: {json}", measure.name))
}

#[test]
fn every_measure_says_the_same_in_each_format() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut answered = 0;
    for measure in ALL {
        let expected = rows(&sigmund, measure, &["--by", "lwp"]);
        let format = |format| asked(&sigmund, measure, &["--by", "lwp", "--format", format]);
        let lines: Vec<Row> =
            format("ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, expected, "{}", measure.name);
        let (tsv, csv) = (format("tsv"), format("csv"));
        let cells = |text: &str, by: char| -> Vec<Vec<String>> {
            text.lines().map(|line| line.split(by).map(String::from).collect()).collect()
        };
        let table = cells(&tsv, '\t');
        assert_eq!(table.len().saturating_sub(1), expected.len(), "{}: {tsv}", measure.name);
        let has_commas = tsv.contains(',');
        assert!(has_commas || cells(&csv, ',') == table, "{}: {csv}{tsv}", measure.name);
        if let Some((columns, cells)) = table.split_first() {
            for (cells, row) in cells.iter().zip(&expected) {
                for (column, cell) in columns.iter().zip(cells) {
                    let text = match &row[column] {
                        Value::Null => String::new(),
                        Value::String(text) => text.clone(),
                        Value::Number(number) if number.is_i64() => number.to_string(),
                        other => {
                            // serde_json rounds the last digit of a fraction.
                            let (one, other) = (cell.parse::<f64>().unwrap(), other.as_f64().unwrap());
                            assert!((one - other).abs() <= 1e-12 * other.abs(), "{}: {column}", measure.name);
                            continue;
                        }
                    };
                    assert_eq!(*cell, text, "{}: {column}", measure.name);
                }
            }
        }
        // Below the names of the columns; a table for people has a line for each row.
        let lines = format("human").lines().filter(|line| !line.trim().is_empty()).count();
        assert_eq!(lines.saturating_sub(1), expected.len(), "{}", measure.name);
        answered += usize::from(!expected.is_empty());
    }
    assert!(answered >= 10, "{answered}");
}

#[test]
fn a_trace_without_user_threads_answers_about_its_lwps() {
    let of_kernel: String =
        listing().lines().filter(|line| !line.starts_with("USER")).map(|line| format!("{line}\n")).collect();
    let sigmund = Sigmund::with_listing("t", &of_kernel);
    let mut answered = Vec::new();
    for measure in ALL {
        // Pairs are a measure with --strict.
        let by_itself = rows(&sigmund, measure, &["--strict"]);
        assert_eq!(by_itself, rows(&sigmund, measure, &["--level", "kern"]), "{}", measure.name);
        if !by_itself.is_empty() {
            answered.push(measure.name);
        }
    }
    for name in ["active-time", "states", "summary", "reactivity", "latency", "quanta", "noise", "breakdown"]
    {
        assert!(answered.contains(&name), "{name} is not in {answered:?}");
    }
}

#[test]
fn mistyped_words_get_the_nearest() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for (words, nearest) in [
        (&["--active-time", "--unit", "uss"][..], "'us'"),
        (&["--lokcs"], "'--locks'"),
        (&["--states", "--by", "proces"], "'process'"),
        (&["--states", "--format", "jsn"], "'json'"),
        (&["reprot"], "'report'"),
        (&["sql", "t.supertrace", "SELECT * FROM lokcs()"], "locks"),
        (&["sql", "t.supertrace", "SELECT * FROM states(\"bye\" => 'lwp')"], "by"),
    ] {
        let reported = sigmund.run(words);
        assert!(reported.status == 2 && reported.stdout.is_empty(), "{words:?}: {reported:?}");
        assert!(reported.stderr.contains(nearest), "{words:?}: {reported:?}");
    }
}

#[test]
fn the_help_has_each_measure_below_its_question() {
    let sigmund = Sigmund::new();
    for help in ["-h", "--help"] {
        let text = sigmund.run([help]).found();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for measure in ALL {
            let flag = match measure.subject {
                Subject::Pair => format!("      --{} <FROM> <TO>", measure.name),
                _ => format!("      --{}", measure.name),
            };
            let place = text.find(&flag).unwrap_or_else(|| panic!("{help}: {flag}"));
            let heading = text[..place].lines().rfind(|line| line.ends_with(':') && !line.starts_with(' '));
            assert_eq!(heading.unwrap().trim_end_matches(':'), measure.heading, "{help}: {flag}");
            assert!(measure.subject == Subject::Pair || words.contains(measure.question), "{help}: {flag}");
        }
    }
}

#[test]
fn stacks_are_no_list_of_cases() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let folded = ["--functions", "--format", "folded", "--worst", "3"];
    sigmund.run(folded).complained(&["--format folded: expected no --worst beside it"]);
}
