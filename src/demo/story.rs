//! Picks one user thread of a super-trace as an example, and shows parts of it.

use anyhow::Result;
use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{Int32Type, Int64Type},
};
use sigmund_model::{Thread, Ticks};
use sigmund_query::{Filter, Format, ThreadRef, list};
use sigmund_sql::SuperTrace;

use super::heading;
use crate::{
    answer,
    output::{self, counted},
    terminal::{block, line},
};

/// Selects the thread to show: one that was stalled, blocked, and resumed on another LWP, or as many of these as
/// possible. Among equal ones, the thread with the fewest intervals; then the one that was stalled longest.
const CHOICE: &str = "SELECT thread, migrations, stalled, blocked FROM ( \
        SELECT threads.thread, threads.migrations, states.*, \
            CASE WHEN migrations > 0 THEN 1 ELSE 0 END + CASE WHEN stalled > 0 THEN 1 ELSE 0 END + \
                CASE WHEN blocked > 0 THEN 1 ELSE 0 END AS kinds \
        FROM threads JOIN ( \
            SELECT thread AS of_thread, count(*) AS intervals, \
                sum(CASE WHEN state = 'stalled' THEN 1 ELSE 0 END) AS stalled, \
                sum(CASE WHEN state = 'stalled' THEN dur_tick ELSE 0 END) AS stalled_tick, \
                sum(CASE WHEN state = 'blocked' THEN 1 ELSE 0 END) AS blocked \
            FROM thread_states GROUP BY thread \
        ) AS states ON threads.thread = states.of_thread) \
    ORDER BY kinds DESC, intervals, stalled_tick DESC, thread LIMIT 1";

/// Selects events that show the scheduling of the thread. System calls and the details of wakeups are left out.
const EVENTS: &str = "^(USER_|node_|sched_switch)";

const INTERVALS_SHOWN: usize = 16;
const EVENTS_SHOWN: usize = 24;

/// The length of a line of the listing. Lines are cut there.
const WIDTH: usize = 118;

/// The thread that is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Story {
    thread: Thread,
    migrations: i64,
    stalls: i64,
    blocks: i64,
}

/// The thread to show; `None` if the trace has no user thread.
pub(super) async fn choose(trace: &SuperTrace) -> Result<Option<Story>> {
    let row = first_row(trace, CHOICE).await?;
    Ok(row.map(|row| Story {
        thread: Thread(number(&row, 0) as u64),
        migrations: number(&row, 1),
        stalls: number(&row, 2),
        blocks: number(&row, 3),
    }))
}

pub(super) async fn show(trace: &SuperTrace, story: &Story) -> Result<()> {
    let thread = story.thread;
    let file = trace.path().display();
    let times = |n: i64| counted(n as u64, "time");

    let what = format!(
        "Thread {}: blocked {}, stalled {}, resumed on another LWP {}",
        answer::thread_label(trace, thread)?,
        times(story.blocks),
        times(story.stalls),
        times(story.migrations),
    );
    let intervals = format!(
        "SELECT state, dur_ns / 1e3 AS us, lwp, cpu, blocked_for, blocked_on, end_reason FROM thread_states \
         WHERE thread = {thread} ORDER BY ts_tick"
    );
    heading(&what, &format!("sigmund sql {file} \"{intervals}\""))?;
    block(&trace.sql(&format!("{intervals} LIMIT {INTERVALS_SHOWN}")).await?.to_text().await?)?;

    if let Some(query) = in_its_place(trace, thread).await? {
        heading("LWPs on that CPU during its longest stall", &format!("sigmund sql {file} \"{query}\""))?;
        block(&trace.sql(&query).await?.to_text().await?)?;
    }

    let question = format!("sigmund -f {file} --thread {thread}");
    heading("Its switches and its own events", &format!("{question} --event '{EVENTS}' --list-events"))?;
    print_events(trace, thread).await?;

    heading("Its active time, of its life", &format!("{question} --active-time"))?;
    print_active_time(trace, thread).await
}

/// A query for the LWPs that ran on the thread's CPU during its longest stall, after it was preempted there.
async fn in_its_place(trace: &SuperTrace, thread: Thread) -> Result<Option<String>> {
    let stall = format!(
        "SELECT ts_tick, ts_tick + dur_tick, cpu FROM ( \
             SELECT state, ts_tick, dur_tick, lag(cpu) OVER (ORDER BY ts_tick) AS cpu \
             FROM thread_states WHERE thread = {thread}) \
         WHERE state = 'stalled' AND cpu IS NOT NULL AND dur_tick > 0 ORDER BY dur_tick DESC LIMIT 1"
    );
    let Some(row) = first_row(trace, &stall).await? else { return Ok(None) };
    let (from, to, cpu) =
        (number(&row, 0), number(&row, 1), row.column(2).as_primitive::<Int32Type>().value(0));
    let query = format!(
        "SELECT lwp, name, count(*) AS times, sum(s.dur_ns) / 1e3 AS us FROM lwp_states AS s JOIN lwps USING (lwp) \
         WHERE state = 'running' AND s.cpu = {cpu} AND s.ts_tick >= {from} AND s.ts_tick < {to} GROUP BY lwp, name ORDER BY us DESC"
    );
    Ok(first_row(trace, &query).await?.map(|_| query))
}

async fn print_events(trace: &SuperTrace, thread: Thread) -> Result<()> {
    let threads = vec![ThreadRef::Number(thread)];
    let filter = Filter { threads, events: vec![EVENTS.parse()?], ..Filter::default() };
    let mut listing = Vec::new();
    let rows = list(trace, &filter, Format::Human, &mut listing).await? as usize;
    for event in String::from_utf8_lossy(&listing).lines().take(EVENTS_SHOWN + 1) {
        line(cut(event.trim_end()))?;
    }
    if rows > EVENTS_SHOWN {
        line(format_args!("… {} more", rows - EVENTS_SHOWN))?;
    }
    Ok(())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

async fn print_active_time(trace: &SuperTrace, thread: Thread) -> Result<()> {
    let life = format!("SELECT active_tick, dur_tick FROM threads WHERE thread = {thread}");
    let Some(row) = first_row(trace, &life).await? else { return Ok(()) };
    let [active, life] = [0, 1].map(|column| Ticks(number(&row, column) as u64));
    let percent = 100.0 * active.0 as f64 / life.0.max(1) as f64;
    line(format_args!("{} cycles", active.0))?;
    let [active, life] = [active, life].map(|ticks| output::length(ticks, trace.tick_hz()));
    Ok(line(format_args!("{active} of {life}: {percent:.3} %"))?)
}

/// The first row of the result of a query.
async fn first_row(trace: &SuperTrace, query: &str) -> Result<Option<RecordBatch>> {
    let batches = trace.sql(query).await?.collect().await?;
    Ok(batches.iter().find(|batch| batch.num_rows() > 0).map(|batch| batch.slice(0, 1)))
}

/// A cell of a row; 0 for NULL.
fn number(row: &RecordBatch, column: usize) -> i64 {
    let cells = row.column(column).as_primitive::<Int64Type>();
    if cells.is_valid(0) { cells.value(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use sigmund_merge::MergeOptions;

    use super::*;

    /// ```text
    /// LWP 70, CPU 0  | 3 | 1 | 2 | LWP 99 | 2 |     | 3 |
    /// LWP 71, CPU 1                             | 2 |
    /// ```
    /// Thread 1 has the fewest intervals and only runs; 2 is stalled, blocks, and is resumed on LWP 71; 3 only blocks.
    const LISTING: &str = "type\tdate_tick\tpid\tcpu\tname\tparams\n\
        KERN\t100\t0\t0\tKERN_CONTEXT_SWITCH\t70\n\
        KERN\t100\t0\t1\tKERN_CONTEXT_SWITCH\t71\n\
        USER\t110\t70\t0\tUSER_CONTEXT_SWITCH\tnext=3 reason=0 on=0 blocked_for=0\n\
        USER\t120\t70\t0\tUSER_CONTEXT_SWITCH\tnext=1 reason=3 on=2 blocked_for=10\n\
        USER\t130\t70\t0\tUSER_CONTEXT_SWITCH\tnext=2 reason=4 on=0 blocked_for=0\n\
        KERN\t140\t70\t0\tsched_switch\tprev_pid=70 prev_state=0 next_pid=99\n\
        KERN\t190\t99\t0\tKERN_CONTEXT_SWITCH\t70\n\
        USER\t200\t70\t0\tUSER_CONTEXT_SWITCH\tnext=0 reason=3 on=9 blocked_for=1\n\
        USER\t210\t71\t1\tUSER_THREAD_READY\t2\n\
        USER\t220\t71\t1\tUSER_CONTEXT_SWITCH\tnext=2 reason=0 on=0 blocked_for=0\n\
        USER\t230\t71\t1\tUSER_THREAD_READY\t3\n\
        USER\t240\t71\t1\tUSER_CONTEXT_SWITCH\tnext=0 reason=4 on=0 blocked_for=0\n\
        USER\t250\t70\t0\tUSER_CONTEXT_SWITCH\tnext=3 reason=0 on=0 blocked_for=0\n";

    async fn opened(folder: &tempfile::TempDir, listing: &str) -> SuperTrace {
        let [input, output] = ["listing.tsv", "out.supertrace"].map(|name| folder.path().join(name));
        std::fs::write(&input, listing).unwrap();
        sigmund_merge::merge(&[input], &output, &MergeOptions::default(), |_| {}).unwrap();
        SuperTrace::open(&output).await.unwrap()
    }

    fn wait_for<T>(what: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(what)
    }

    #[test]
    fn the_thread_that_was_stalled_and_blocked_and_moved_is_chosen() {
        let folder = tempfile::tempdir().unwrap();
        wait_for(async {
            let trace = opened(&folder, LISTING).await;
            let story = choose(&trace).await.unwrap();
            assert_eq!(story, Some(Story { thread: Thread(2), migrations: 1, stalls: 1, blocks: 1 }));
            let query = in_its_place(&trace, Thread(2)).await.unwrap().expect("LWP 99 ran in its place");
            assert_eq!(number(&first_row(&trace, &query).await.unwrap().unwrap(), 2), 1);
            assert!(query.contains("s.cpu = 0 AND s.ts_tick >= 140 AND s.ts_tick < 190"), "{query}");
        });
    }

    #[test]
    fn without_such_a_thread_one_that_had_the_most_of_it_is_chosen_if_there_is_any() {
        let without_kernel: String =
            LISTING.split_inclusive('\n').filter(|line| !line.starts_with("KERN")).collect();
        let folder = tempfile::tempdir().unwrap();
        wait_for(async {
            let trace = opened(&folder, &without_kernel).await;
            let story = choose(&trace).await.unwrap();
            assert_eq!(story, Some(Story { thread: Thread(2), migrations: 1, stalls: 0, blocks: 1 }));
            assert_eq!(in_its_place(&trace, Thread(2)).await.unwrap(), None);
        });

        let kernel_only: String =
            LISTING.split_inclusive('\n').filter(|line| !line.starts_with("USER")).collect();
        let folder = tempfile::tempdir().unwrap();
        wait_for(async {
            let trace = opened(&folder, &kernel_only).await;
            assert_eq!(choose(&trace).await.unwrap(), None);
        });
    }

    #[test]
    fn a_long_line_is_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        let long = "ä".repeat(WIDTH + 1);
        assert_eq!(cut(&long), format!("{}…", "ä".repeat(WIDTH)));
    }
}
