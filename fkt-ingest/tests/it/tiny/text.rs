//! Texts: of tracefs, of `trace-cmd report`, and listings written by hand.

use super::Tiny;

pub(super) fn all() -> Vec<Tiny> {
    let variants = [
        ("ftrace_text-trace", TRACE, 4),
        ("ftrace_text-pipe", PIPE, 3),
        ("ftrace_text-report", REPORT, 3),
        ("ftrace_text-report-ticks", REPORT_TICKS, 3),
        ("listing-paper", PAPER, 4),
        ("listing-kernel", KERNEL, 5),
    ];
    variants.map(|(name, text, events)| Tiny { name, bytes: text.into(), events }).into()
}

const TRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/4   #P:2
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
##### CPU 1 buffer started ####
          my app-7       [001] d..2.    10.000001: sched_switch: prev_comm=my app prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [001] d.h2.    10.000002: irq_handler_entry: irq=24 name=eth0
          <idle>-0       [000] dNs4.    10.000004: sched_wakeup: comm=my app pid=7 prio=120 target_cpu=000
           <...>-9       [000] .....    10.000008: tracing_mark_write: hello there
";

const PIPE: &str =
    "          <idle>-0       [001] dNh4. 10.000004: sched_waking: comm=x pid=7 prio=120 target_cpu=000
CPU:1 [LOST 12 EVENTS]
             x-7       [001] ..... 10.000005: sys_enter: NR 1 (1, 7ffe, 3, 0, 0, 0)
             x-7       [001] ..... 10.000006: sys_exit: NR 1 = -22
";

const REPORT: &str = "cpus=2
CPU 1 is empty
           x-7     [000]    55.123456: sched_switch:         x:7 [120] S ==> swapper/0:0 [120]
CPU:0 [178 EVENTS DROPPED]
      <idle>-0     [000]    55.123457: irq_handler_entry:    irq=24 name=eth0
      <idle>-0     [000]    55.123458: bprint:               f: 1 2
";

const REPORT_TICKS: &str = "cpus=2
           x-7     [000] 5150163706: sched_wakeup:         y:8 [120] CPU:001
           x-7     [000] 5150163806: sched_migrate_task:   comm=y pid=8 prio=120 orig_cpu=0 dest_cpu=1
           y-8     [001] 5150163906: e:                    a=1 b=\"two\" c={ 0x1, 0x2 }
";

const PAPER: &str = "# tick_hz=2800000000
type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams
USER\t5150163706\t2732\t2\t8(work/6)\t23014\tUSER_CONTEXT_SWITCH\t1(daemon)
KERN\t5150163806\t2732\t2\t?\t-\tKERN_CONTEXT_SWITCH\t1630
USER\t5150163906\t1630\t2\t1\t230\treceived_msg\tlen=0x10 from=\"a \\\"b\\\"\" ?
KERN\t5150164706\t1630\t0\t-\t-\tIRQ\t24(eth0)
";

const KERNEL: &str = "param(s)\tevent\ttype\tdate_tick\tpid
next_pid=70 prev_state=1\tsched_switch\tKERN\t100\t0
pid=70,target_cpu=0\tsched_wakeup_new\tKERN\t90\t0
irq=5\tirq_handler_entry\tKERN\t120\t70
irq=5\tirq_handler_exit\tKERN\t121\t70
7 3 -1\tUSER_CONTEXT_SWITCH\tUSER\t130\t70
";
