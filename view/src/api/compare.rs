//! Two super-traces in the same measure: the figures of `--compare A B`.

use serde_json::Value;
use sigmund_measures::{Subject, named};
use sigmund_model::{Hertz, Nanos, Ticks};
use sigmund_query::{Filter, Instant, compare_traces};

use super::{
    Query, Refusal,
    measure::{answered, options, pair, path_of, quoted},
};
use crate::View;

/// Without a window, all of both super-traces is compared. With a window, the same time since the first event of each.
pub(crate) async fn compare(a: &View, b: &View, query: &Query) -> Result<Value, Refusal> {
    let name = query.get("name").unwrap_or("summary");
    let measure = named(name).ok_or_else(|| Refusal::missing(format!("{name}: there is no such measure")))?;
    let mut options = options(query)?;
    // The command accepts this option only for a single trace.
    options.worst = 0;
    let mut command = format!("sigmund --compare {} {}", path_of(a), path_of(b));
    let mut filter = Filter::default();
    if query.get("from").is_some() || query.get("to").is_some() {
        let window = query.window(a)?;
        let since = |tick: i64| -> Result<Instant, Refusal> {
            let hz = a.trace.tick_hz().ok_or_else(|| Refusal::wrong("the rate of A's clock is not known"))?;
            Ok(Instant::Since(nanos(hz, a.offset(tick))))
        };
        let (from, to) = (since(window.from)?, since(window.to - 1)?);
        command.push_str(&format!(" --from {from} --to {to}"));
        (filter.from, filter.to) = (Some(from), Some(to));
    }
    match (measure.subject, pair(query), query.get("subject")) {
        (Subject::Pair, Some((from, to)), _) => {
            command.push_str(&format!(" --reactivity {} {}", quoted(from), quoted(to)));
        }
        (_, Some((from, to)), _) => {
            command.push_str(&format!(" --{name} {} {}", quoted(from), quoted(to)));
        }
        (_, None, Some(subject)) => command.push_str(&format!(" --{name} {}", quoted(subject))),
        (_, None, None) => command.push_str(&format!(" --{name}")),
    }
    if let Some(by) = options.by {
        command.push_str(&format!(" --by {}", by.name()));
    }
    let measured = compare_traces((&a.trace, &b.trace), measure, &filter, &options).await?;
    Ok(answered(a, &measured, &command, ""))
}

/// A time since the first event, like the command reads it.
fn nanos(hz: Hertz, offset: i64) -> Nanos {
    hz.to_nanos(Ticks(offset.max(0) as u64))
}
