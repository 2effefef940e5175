//! Creators of user threads and LWPs on critical paths, by the command.

use crate::{sigmund::Sigmund, views::listing_of};

// LWP 70 creates LWP 71, which runs on CPU 1 from 115 on, creates user thread 5 at 120, and carries it from 125 on.
#[test]
fn what_was_before_a_creation_is_on_the_path_of_its_creator() {
    let listing = "\
# tick_hz=1000000000
type date_tick pid cpu thr code name params
KERN 100 0 0 ? - sched_switch prev_state=0 next_pid=70
KERN 101 0 1 ? - sched_switch prev_state=0 next_pid=80
KERN 102 80 1 ? - sched_switch prev_state=1 next_pid=0
KERN 105 70 0 ? - sys_enter id=0(read) args0=3
KERN 106 70 0 ? - sys_exit id=0 ret=1
KERN 110 70 0 ? - sched_process_fork parent_comm=a parent_pid=70 child_comm=b child_pid=71
KERN 112 70 0 ? - sched_wakeup_new pid=71 target_cpu=1
KERN 115 0 1 ? - sched_switch prev_state=0 next_pid=71
USER 120 71 1 ? - USER_THREAD_NEW new=5
USER 125 71 1 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0
USER 150 71 1 5 - USER_THREAD_READY ready=6
KERN 160 71 1 5 - sched_switch prev_state=1 next_pid=0
";
    let sigmund = Sigmund::with_listing("t", &listing_of(listing));
    let asked = ["--critical-path", "sys_enter", "USER_THREAD_READY", "--worst", "1", "--format", "csv"];
    assert_eq!(
        sigmund.run(asked).found(),
        "\
instance,ts_tick,dur_tick,thread,lwp,name,cpu,what,why,culprit
1,105,5,,70,,0,running,created LWP 71(b),
1,110,2,,71,b,,unknown,created 5,unknown
1,112,3,,71,b,1,waiting for a CPU,created 5,idle
1,115,5,,71,b,1,running,created 5,
1,120,5,5,,,,waiting for an LWP,,unknown
1,125,25,5,71,,1,running,,
"
    );
}
