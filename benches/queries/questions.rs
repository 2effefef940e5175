//! What is asked, of us and of peers.

/// One question.
pub(crate) struct Question {
    pub(crate) name: &'static str,
    /// Arguments of `sigmund`; `T` is the super-trace, `N` a user thread, `FROM` and `TO` a millisecond.
    pub(crate) ours: &'static [&'static str],
    /// The same of Parquet files in SQL; `T` and `N` as above.
    pub(crate) sql: Option<&'static str>,
    /// The target, in seconds.
    pub(crate) seconds: Option<f64>,
}

const fn question(name: &'static str, ours: &'static [&'static str]) -> Question {
    Question { name, ours, sql: None, seconds: None }
}

impl Question {
    const fn also(self, sql: &'static str) -> Question {
        Question { sql: Some(sql), ..self }
    }

    const fn within(self, seconds: f64) -> Question {
        Question { seconds: Some(seconds), ..self }
    }
}

/// All of them.
pub(crate) const ALL: [Question; 19] = [
    question("the first answer", &["sql", "T", "SELECT 1"]).within(0.03),
    question("events by name", &["sql", "T", "SELECT name, count(*) AS n FROM events GROUP BY name ORDER BY n, name"])
        .also("SELECT name, count(*) AS n FROM 'T/events/*.parquet' GROUP BY name ORDER BY n, name")
        .within(0.8),
    question("numbers of parameters", &["sql", "T", "SELECT sum(cardinality(args)) FROM raw_events"])
        .also("SELECT sum(len(args)) FROM 'T/events/*.parquet'"),
    question("states, added up", &["sql", "T", "SELECT state, sum(dur_tick) AS n FROM raw_thread_states GROUP BY state ORDER BY state"])
        .also("SELECT state, sum(dur_tick) AS n FROM 'T/thread_states/*.parquet' GROUP BY state ORDER BY state"),
    question("active time of a thread", &["-f", "T", "--thread", "N", "--active-time"])
        .also("SELECT active_tick FROM 'T/threads/*.parquet' WHERE thread = N")
        .within(0.05),
    question("states of a thread", &["-f", "T", "--thread", "N", "--states"]).within(0.05),
    question("events of a thread", &["-f", "T", "--thread", "N", "--list-events"])
        .also("SELECT * FROM 'T/events/*.parquet' WHERE thread = N ORDER BY ts_tick")
        .within(0.1),
    question("events of 1 ms", &["-f", "T", "--from", "FROM", "--to", "TO", "--list-events"]).within(0.1),
    question("system calls in states", &[
        "sql", "T",
        "SELECT state, sum(dur_tick) AS n FROM overlap(raw_syscalls, raw_thread_states, thread) GROUP BY state ORDER BY state",
    ])
    .within(5.0),
    question("info", &["info", "T"]).within(0.3),
    question("check", &["check", "T"]),
    question("all events as TSV", &["-f", "T", "--list-events", "--format", "tsv"]),
    question("summary", &["-f", "T", "--summary"]),
    question("states of all", &["-f", "T", "--states", "--by", "pattern"]),
    question("latency", &["-f", "T", "--latency", "--by", "pattern"]),
    question("breakdown", &["-f", "T", "--breakdown", "--by", "pattern"]),
    question("quanta", &["-f", "T", "--quanta", "--by", "pattern"]),
    question("noise of a thread", &["-f", "T", "--thread", "N", "--noise"]),
    question("critical path of a thread", &["-f", "T", "--thread", "N", "--critical-path"]),
];
