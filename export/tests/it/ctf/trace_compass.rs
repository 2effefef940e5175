//! Kernel events have the names and fields that Trace Compass's kernel analyses require. Trace Compass itself is not
//! run: the fields that its handlers read unconditionally (`SchedSwitchHandler`, `SchedWakeupHandler`,
//! `IrqEntryHandler`, `SoftIrqEntryHandler`, `SysEntryHandler`, `ProcessForkHandler`, `SchedMigrateTaskHandler`) are
//! compared with the output of babeltrace2.

use sigmund_export::timeline::{Change, CpuId, EventTypeId, LwpId, RecordedEvent, Sink};
use sigmund_model::{Context, EventType, Field, FieldType, Level, Params, Ticks};

use super::babeltrace::{self, Line, Value};
use super::write;
use crate::known_timelines;

/// A kernel event: its name, its fields (`t` after the name of a text field), and its values as printed.
type Recorded = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Emits one event of each, on CPU 3, and reads them.
fn exported(recorded: &[Recorded], level: Level) -> (Vec<Line>, String) {
    let mut actors = known_timelines::actors(11_000);
    let field = |name: &&str| {
        let (name, ty) =
            name.strip_suffix(":t").map_or((*name, FieldType::I64), |name| (name, FieldType::Text));
        Field { name: name.into(), ty }
    };
    let ty = |(name, fields, _): &Recorded| EventType {
        level,
        code: None,
        name: (*name).into(),
        key: 0,
        fields: fields.iter().map(field).collect(),
        format: String::new(),
    };
    actors.event_types = recorded.iter().map(ty).collect();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    write(&folder, &actors, |sink| {
        for (index, (_, _, values)) in recorded.iter().enumerate() {
            emit(sink, index as u32, values);
        }
        sink.finish().unwrap();
    });
    let metadata = std::fs::read_to_string(folder.join("metadata")).unwrap();
    (babeltrace::read(&folder), metadata)
}

fn emit(sink: &mut dyn Sink, index: u32, values: &[&str]) {
    let mut params = Params::default();
    for value in values {
        match (value.parse::<i64>(), value.split_once('=')) {
            (Ok(number), _) => params.push_number(number),
            (_, Some((number, name))) => params.push_named(number.parse().unwrap(), name),
            _ if *value == "?" => params.push_unknown(),
            _ => params.push_text(value),
        }
    }
    let (lwp, context) = (Some(LwpId(0)), Some(Context::Task));
    let (kind, cpu) = (EventTypeId(index), Some(CpuId(1)));
    let event = RecordedEvent { kind, cpu, lwp, thread: None, context, cpu_seen: None, params: &params };
    sink.change(Ticks(2000 + u64::from(index)), &Change::Event(&event)).unwrap();
}

/// `sched_wakeup comm="a" tid=7`: texts in quotes.
fn shown(line: &Line) -> String {
    let field = |(name, value): &(String, Value)| match value {
        Value::Number(number) => format!(" {name}={number}"),
        Value::Text(text) => format!(" {name}={text:?}"),
        Value::Named(number, label) => format!(" {name}={number}({label})"),
    };
    format!("{}{}", line.name, line.fields.iter().map(field).collect::<String>())
}

const SWITCH: &[&str] =
    &["prev_comm:t", "prev_pid", "prev_prio", "prev_state", "next_comm:t", "next_pid", "next_prio"];

#[test]
fn kernel_events_have_the_names_and_fields_of_lttng() {
    if !babeltrace::is_installed() {
        return;
    }
    let recorded: [Recorded; 13] = [
        ("sched_switch", SWITCH, &["sumtime", "70", "120", "1=S", "swapper/3", "0", "120"]),
        ("sched_switch", SWITCH, &["sumtime", "70", "120", "256=R+", "bash", "9", "120"]),
        ("sched_wakeup", &["comm:t", "pid", "prio", "target_cpu"], &["bash", "9", "120", "3"]),
        ("sched_waking", &["comm:t", "pid", "prio", "target_cpu"], &["bash", "9", "120", "3"]),
        (
            "sched_migrate_task",
            &["comm:t", "pid", "prio", "orig_cpu", "dest_cpu"],
            &["bash", "9", "120", "3", "0"],
        ),
        (
            "sched_process_fork",
            &["parent_comm:t", "parent_pid", "child_comm:t", "child_pid"],
            &["bash", "9", "bash", "10"],
        ),
        ("irq_handler_entry", &["irq", "name:t"], &["24=eth0", "eth0"]),
        ("irq_handler_exit", &["irq", "ret"], &["24", "1"]),
        ("softirq_entry", &["vec"], &["3=NET_RX"]),
        ("sys_enter", &["id", "args0"], &["0=read", "5"]),
        ("sys_exit", &["id", "ret"], &["0=read", "-11"]),
        ("sys_enter_openat", &["dfd", "filename"], &["-100", "4096"]),
        ("sys_exit", &["id", "ret"], &["9999", "0"]),
    ];
    let (lines, metadata) = exported(&recorded, Level::Kern);
    let shown: Vec<String> = lines.iter().map(shown).collect();
    let switch = r#"sched_switch prev_comm="sumtime" prev_tid=70 prev_prio=120"#;
    assert_eq!(
        shown,
        [
            &format!(
                r#"{switch} prev_state=1 next_comm="swapper/3" next_tid=0 next_prio=120 prev_state_recorded=1"#
            ),
            // Preempted; Trace Compass must read it as runnable.
            &format!(
                r#"{switch} prev_state=0 next_comm="bash" next_tid=9 next_prio=120 prev_state_recorded=256"#
            ),
            r#"sched_wakeup comm="bash" tid=9 prio=120 target_cpu=3"#,
            r#"sched_waking comm="bash" tid=9 prio=120 target_cpu=3"#,
            r#"sched_migrate_task comm="bash" tid=9 prio=120 orig_cpu=3 dest_cpu=0"#,
            r#"sched_process_fork parent_comm="bash" parent_tid=9 child_comm="bash" child_tid=10"#,
            r#"irq_handler_entry irq=24 name="eth0""#,
            "irq_handler_exit irq=24 ret=1",
            "irq_softirq_entry vec=3",
            "syscall_entry_read id=0 args0=5",
            "syscall_exit_read id=0 ret=-11",
            "syscall_entry_openat dfd=-100 filename=4096",
            "syscall_exit_unknown id=9999 ret=0",
        ]
    );
    for line in &lines {
        // `CtfCpuAspect` and `ContextTidAspect` read these.
        assert_eq!(line.packet, [("cpu_id".to_owned(), Value::Number("3".into()))]);
        assert_eq!(line.context[0], ("tid".to_owned(), Value::Number("70".into())));
    }
    // `LttngKernelTrace.validate` and `getTracerFromEnv`; the prefix is that of `Metadata.preValidate`.
    assert!(metadata.starts_with("/* CTF 1.8 */\n"));
    for line in [
        "domain = \"kernel\";",
        "tracer_name = \"lttng-modules\";",
        "tracer_major = 2;",
        "tracer_minor = 13;",
    ] {
        assert!(metadata.contains(&format!("\t{line}\n")), "{line}");
    }
    // The context's name is `context._tid` there: with the `_`.
    assert!(metadata.contains("int32_t _tid;"));
}

#[test]
fn an_event_that_would_stop_an_analysis_has_another_name() {
    if !babeltrace::is_installed() {
        return;
    }
    let recorded: [Recorded; 3] = [
        ("sched_switch", &["next_pid"], &["9"]),
        ("sched_wakeup", &["comm:t", "pid", "prio"], &["bash", "9", "?"]),
        ("sched_wakeup", &["comm:t", "pid", "prio"], &["bash", "9", "high"]),
    ];
    let (lines, _) = exported(&recorded, Level::Kern);
    let shown: Vec<String> = lines.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            r#"sched_switch_incomplete next_tid=9"#,
            r#"sched_wakeup_incomplete comm="bash" tid=9"#,
            r#"sched_wakeup_incomplete comm="bash" tid=9 prio="high""#,
        ]
    );
    let recorded: [Recorded; 2] = [("sched_switch", &["pid"], &["9"]), ("received_msg", &["pid"], &["9"])];
    let (lines, _) = exported(&recorded, Level::User);
    assert_eq!(
        lines.iter().map(shown_name).collect::<Vec<_>>(),
        ["user:sched_switch pid=9", "received_msg pid=9"]
    );
}

fn shown_name(line: &Line) -> String {
    shown(line)
}
