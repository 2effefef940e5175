//! A program linked with libfxt, recorded during the test.

use std::process::{Command, Stdio};

use fkt_ingest::from_bytes;
use sigmund_model::{Event, Reported};

use crate::{live::tool_exists, skipped::skipped};

/// Six threads write 60,000 records of three arguments and some texts into buffers that overflow.
const PROGRAM: &str = r#"
#define CONFIG_FUT
#include <fut.h>
#include <pthread.h>
#include <unistd.h>
static void *run(void *number) {
    for (long i = 0; i < 10000; i++) {
        FUT_DO_PROBE3(0x5101, i, (long) number, i * 3);
        if (i % 1000 == 0) FUT_DO_PROBESTR(0x5200, "a text that is longer than a word");
    }
    return 0;
}
int main(void) {
    pthread_t threads[6];
    fut_enable_tid_logging();
    enable_fut_flush();
    fut_set_filename("trace.fxt");
    if (fut_setup(1 << 15, 0xffffffff, getpid()) < 0) return 1;
    fut_keychange(FUT_ENABLE, 0xffffffff, getpid());
    for (long i = 0; i < 6; i++) pthread_create(threads + i, 0, run, (void *) i);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
    fut_endup("trace.fxt");
    return fut_done() < 0;
}
"#;

/// Tick, thread, code, arguments as numbers.
type Row = (u64, u64, u64, Vec<u64>);

fn rows(printed: &str) -> Vec<Row> {
    let hex = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let row = |line: &str| {
        let (tick, rest) = line.split_once("u\t[")?;
        let (id, rest) = rest.split_once("]\t")?;
        let columns: Vec<&str> = rest.split('\t').collect();
        let code = hex(columns.get(1)?.split_once('(')?.0)?;
        Some((
            tick.trim().parse().ok()?,
            hex(id)?,
            code,
            columns.iter().skip(3).map_while(|c| hex(c)).collect(),
        ))
    };
    printed.lines().filter_map(row).collect()
}

#[test]
fn a_program_with_many_threads_reads_as_fxt_print_prints_it() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    cc.arg("-O1").arg(&source).args(["-lfxt", "-lpthread", "-o"]).arg(dir.path().join("program"));
    let compiled = cc.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !compiled || !tool_exists("fxt_print") {
        return skipped("cc, libfxt-dev or fxt-tools is not installed");
    }
    let program = Command::new(dir.path().join("program")).current_dir(dir.path()).status().unwrap();
    assert!(program.success());
    let output =
        Command::new("fxt_print").args(["-f", "trace.fxt"]).current_dir(dir.path()).output().unwrap();
    let mut theirs = rows(&String::from_utf8_lossy(&output.stdout));
    assert!(theirs.len() > 60_060);
    // It prints them as they are in the file.
    theirs.sort_by_key(|row| row.0);

    let trace = from_bytes("trace.fxt", std::fs::read(dir.path().join("trace.fxt")).unwrap()).unwrap();
    assert_eq!(trace.losses(), []);
    let mut stream = trace.streams().remove(0);
    let (mut event, mut ours) = (Event::default(), Vec::new());
    while stream.events.next_into(&mut event).unwrap() {
        let code = trace.event_types()[event.kind as usize].code.unwrap();
        // It prints a function's name in place of its address.
        let shown = if matches!(code, 0x320 | 0x420) { 0 } else { usize::MAX };
        let args = event
            .params
            .iter()
            .take(shown)
            .map_while(|param| param.number)
            .map(|number| number as u64)
            .collect();
        let id = if let Reported::Some(thread) = event.thread { thread.0 } else { 0 };
        ours.push((event.tick.0, id, u64::from(code), args));
    }
    assert_eq!(stream.events.take_losses(), []);
    assert_eq!(ours.len(), theirs.len());
    let different = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
    assert_eq!(different, None);
}
