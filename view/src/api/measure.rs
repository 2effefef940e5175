//! Measures of a selection, with the command and the SQL that give the same result.

use serde_json::{Value, json};
use sigmund_measures::{By, Kind as ColumnKind, Value as Cell, named, object_text};
use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_query::{
    Filter, Instant, LwpRef, MeasureOptions, Measured, Selector, ThreadRef, gaps_note, measure as compute,
};

use super::{Query, Refusal, cells::number, query::Window};
use crate::{
    View,
    key::{Key, Kind},
};

/// The largest number of rows of an answer.
const MOST_ROWS: usize = 10_000;

/// The largest number of rows that a command names.
const MOST_NAMED: usize = 200;

/// A question, in the form in which it is written for the command.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked<'a> {
    /// `None` means all rows.
    pub(super) keys: Option<&'a [Key]>,
    pub(super) window: Window,
    pub(super) kind: Kind,
    pub(super) by: Option<By>,
    pub(super) subject: Option<&'a str>,
    pub(super) pair: Option<(&'a str, &'a str)>,
    pub(super) worst: usize,
}

pub(super) async fn measure(view: &View, query: &Query) -> Result<Value, Refusal> {
    let name = query.get("name").unwrap_or_default();
    let measure = named(name).ok_or_else(|| Refusal::missing(format!("{name}: there is no such measure")))?;
    let (keys, window) = (query.keys()?, query.window(view)?);
    let options = options(query)?;
    let measured = compute(&view.trace, measure, &filter(view, keys.as_deref(), window), &options).await?;
    let kind = keys.as_ref().and_then(|keys| keys.first()).map_or(Kind::Thread, |key| key.kind);
    let asked = Asked {
        keys: keys.as_deref(),
        window,
        kind,
        by: options.by,
        subject: query.get("subject"),
        pair: pair(query),
        worst: options.worst,
    };
    let (command, sql) = command(view, name, &asked);
    Ok(answered(view, &measured, &command, &sql))
}

/// Rows in a window.
pub(super) fn filter(view: &View, keys: Option<&[Key]>, window: Window) -> Filter {
    let of = |kind: Kind| {
        let keys = keys.into_iter().flatten().filter(move |key| key.kind == kind);
        keys.map(|key| key.number)
    };
    let is_all = (window.from, window.to) == (view.extent.0, view.extent.1.saturating_add(1));
    // A window may begin before the trace, for example if the page compares two traces.
    let instant = |tick: i64| (!is_all).then_some(Instant::Tick(Ticks(tick.max(0) as u64)));
    Filter {
        threads: of(Kind::Thread).map(|number| ThreadRef::Number(Thread(number))).collect(),
        lwps: of(Kind::Lwp).map(|number| LwpRef::Number(Lwp(number as u32))).collect(),
        cpus: of(Kind::Cpu).map(|number| Cpu(number as u32)).collect(),
        from: instant(window.from),
        to: instant(window.to - 1),
        ..Filter::default()
    }
}

/// The parameters FROM and TO, if both are given.
pub(super) fn pair(query: &Query) -> Option<(&str, &str)> {
    Some((query.get("pair_from")?, query.get("pair_to")?))
}

/// The options of a measure, except the rows and the window.
pub(super) fn options(query: &Query) -> Result<MeasureOptions, Refusal> {
    let selector = |text: &str| text.parse::<Selector>();
    let by = match query.get("by") {
        None => None,
        Some(word) => Some(By::from_name(word).ok_or_else(|| {
            Refusal::wrong(format!("by: expected thread, lwp, process, name or pattern, found `{word}`"))
        })?),
    };
    Ok(MeasureOptions {
        by,
        worst: query.count("worst", 0, MOST_ROWS)?,
        subject: query.get("subject").map(str::to_string),
        pair: pair(query).map(|(from, to)| Ok::<_, Refusal>((selector(from)?, selector(to)?))).transpose()?,
        ..MeasureOptions::default()
    })
}

/// An answer in the form that the page reads. Its instants are offsets of `view`.
pub(super) fn answered(view: &View, measured: &Measured, command: &str, sql: &str) -> Value {
    let answer = &measured.answer;
    let columns = answer
        .columns
        .iter()
        .map(|column| json!({ "name": column.name, "kind": kind_name(column.kind), "about": column.doc }));
    let rows = answer.rows.iter().take(MOST_ROWS).map(|row| {
        let cells = answer.columns.iter().zip(row).map(|(column, value)| match value {
            Cell::Null => Value::Null,
            Cell::Number(tick) if column.kind == ColumnKind::Instant => number(view.offset(tick)),
            Cell::Number(object) if column.kind == ColumnKind::Object => json!(object_text(object)),
            Cell::Number(count) => number(count),
            Cell::Fraction(share) => json!(share),
            Cell::Text(text) => json!(text),
        });
        cells.collect::<Vec<_>>()
    });
    let rows = rows.collect::<Vec<_>>();
    let mut notes = answer.notes.clone();
    notes.extend(answer.rows.check().err());
    if answer.rows.len() > MOST_ROWS {
        notes.push(format!("{} rows, of which the first {MOST_ROWS} are here", answer.rows.len()));
    }
    if measured.gaps > 0 {
        notes.push(gaps_note(measured.gaps));
    }
    json!({
        "columns": columns.collect::<Vec<_>>(),
        "rows": rows,
        "notes": notes,
        "command": command,
        "sql": sql,
    })
}

fn kind_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Count => "number",
        ColumnKind::Object => "object",
        ColumnKind::Length => "length",
        ColumnKind::Instant => "instant",
        ColumnKind::Percent => "percent",
        ColumnKind::Fraction => "fraction",
        ColumnKind::Text => "text",
    }
}

/// The `sigmund` command that gives the same numbers, and the query in SQL.
pub(super) fn command(view: &View, measure: &str, asked: &Asked<'_>) -> (String, String) {
    let mut command = format!("sigmund -f {}", path_of(view));
    let mut arguments: Vec<String> = Vec::new();
    for kind in [Kind::Thread, Kind::Lwp, Kind::Cpu] {
        let keys = asked.keys.unwrap_or_default().iter().filter(|key| key.kind == kind);
        let numbers: Vec<String> = keys.take(MOST_NAMED).map(|key| key.number.to_string()).collect();
        if !numbers.is_empty() {
            command.push_str(&format!(" --{} {}", kind.name(), numbers.join(",")));
            arguments.push(format!("{} => '{}'", kind.name(), numbers.join(",")));
        }
    }
    let (first, end) = (view.extent.0, view.extent.1.saturating_add(1));
    if (asked.window.from, asked.window.to) != (first, end) {
        let (from, to) = (asked.window.from.max(0), (asked.window.to - 1).max(0));
        command.push_str(&format!(" --from {from} --to {to}"));
        arguments.push(format!("\"from\" => '{from}', \"to\" => '{to}'"));
    }
    command.push_str(&format!(" --{measure}"));
    if let Some(subject) = asked.subject {
        command.push_str(&format!(" {}", quoted(subject)));
        arguments.push(format!("of => '{}'", subject.replace('\'', "''")));
    }
    if let Some((from, to)) = asked.pair {
        command.push_str(&format!(" {} {}", quoted(from), quoted(to)));
        let (from, to) = (from.replace('\'', "''"), to.replace('\'', "''"));
        arguments.push(format!("from_event => '{from}', to_event => '{to}'"));
    }
    let is_of_lwps = asked.kind == Kind::Lwp && asked.by.is_none() && asked.keys.is_none();
    if let Some(by) = asked.by.or(is_of_lwps.then_some(By::Lwp)) {
        command.push_str(&format!(" --by {}", by.name()));
        arguments.push(format!("\"by\" => '{}'", by.name()));
    }
    if asked.worst > 0 {
        command.push_str(&format!(" --worst {}", asked.worst));
        arguments.push(format!("worst => {}", asked.worst));
    }
    let sql = format!("SELECT * FROM {}({})", measure.replace('-', "_"), arguments.join(", "));
    (command, sql)
}

/// The path of a super-trace, quoted for a shell.
pub(super) fn path_of(view: &View) -> String {
    let path = view.trace.path().canonicalize().unwrap_or_else(|_| view.trace.path().to_path_buf());
    quoted(&path.to_string_lossy())
}

/// A word, quoted for a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for text in ["plain/path.supertrace", "", "with space", "it's", "$(rm -rf)", "a\nb", "`x`"] {
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("printf %s {}", quoted(text)))
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
