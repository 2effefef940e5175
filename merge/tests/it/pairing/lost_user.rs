//! Locks and ready queues when user events of an LWP were lost. Packets contain the number of lost events.

use sigmund_model::FieldType;

use crate::supertrace::{
    Inputs, Merged,
    user_file::{self, Packet, lwp_end},
};

const SWITCH: u32 = 23014;
const READY: u32 = 23015;
const ACQUIRE: u32 = 11;
const RELEASE: u32 = 12;
const MESSAGE: u32 = 7;

/// The reason of a switch: the quantum of the user thread was over.
const QUANTUM: u64 = 2;

type Events<'e> = &'e [(u64, u32, &'e [u64])];

/// Merges the events of LWP 70, and the events of LWP 71 before and after a gap in which `lost` events were lost.
fn merged(of_70: Events<'_>, of_71: (Events<'_>, Events<'_>), lost: u64) -> Merged {
    let lock = [("lock", FieldType::Pointer), ("kind", FieldType::U8)];
    let switch = [("next", FieldType::Thread), ("reason", FieldType::U8)];
    let mut trace = fut::trace::file_head().to_vec();
    trace.extend(user_file::declarations(&[
        (SWITCH, "USER_CONTEXT_SWITCH", &switch),
        (READY, "USER_THREAD_READY", &[("thread", FieldType::Thread)]),
        (ACQUIRE, "LOCK_ACQUIRE", &lock),
        (RELEASE, "LOCK_RELEASE", &lock),
        (MESSAGE, "received_msg", &[("len", FieldType::U64)]),
    ]));
    trace.extend(Packet { lwp: 70, sequence: 0, thread: 5, lost: 0, events: of_70 }.encode());
    trace.extend(Packet { lwp: 71, sequence: 0, thread: 6, lost: 0, events: of_71.0 }.encode());
    trace.extend(Packet { lwp: 71, sequence: 1, thread: 6, lost, events: of_71.1 }.encode());
    trace.extend([lwp_end(70, 0), lwp_end(71, lost)].concat());
    Inputs::new().file("user-60.fut", &trace).merge()
}

// LWP 70  |5   take 64    quantum|  ···  |5  release|
//          100 110          130           170 180
// LWP 71  |6      |  lost    |6                      |
//          105  120         150                     190
#[test]
fn a_hold_is_known_up_to_the_gap_in_which_another_thread_may_have_released_it() {
    let of_70: Events<'_> = &[
        (100, MESSAGE, &[1]),
        (110, ACQUIRE, &[64, 1]),
        (130, SWITCH, &[0, QUANTUM]),
        (170, SWITCH, &[5, 0]),
        (180, RELEASE, &[64, 1]),
    ];
    let of_71: (Events<'_>, Events<'_>) =
        (&[(105, MESSAGE, &[1]), (120, MESSAGE, &[1])], &[(150, MESSAGE, &[1]), (190, MESSAGE, &[1])]);
    let locks = |lost| {
        let columns = ["ts_tick", "wait_tick", "hold_tick", "thread", "end_reason"];
        merged(of_70, of_71, lost).table("locks", &columns)
    };
    assert_eq!(locks(0), ["110 0 70 5 released"]);
    // 5 was unmounted in the gap: 6 may have released the lock, and 5 may have taken it again on another LWP.
    assert_eq!(locks(3), ["110 0 10 5 lost"]);
}

// LWP 70  |5  makes 7 ready            |7 runs
//          100    110                   160
// LWP 71  |6      |  lost    |6      makes 8 ready
//          105  120         150         165
#[test]
fn a_ready_queue_is_counted_up_to_a_gap_and_again_from_the_next_evidence() {
    let of_70: Events<'_> = &[
        (100, MESSAGE, &[1]),
        (110, READY, &[7]),
        (160, SWITCH, &[7, QUANTUM]),
        (200, SWITCH, &[5, QUANTUM]),
    ];
    let of_71: (Events<'_>, Events<'_>) = (
        &[(105, MESSAGE, &[1]), (120, MESSAGE, &[1])],
        &[(150, MESSAGE, &[1]), (165, READY, &[8]), (190, SWITCH, &[8, QUANTUM])],
    );
    let counters = |lost| merged(of_70, of_71, lost).table("counters", &["ts_tick", "kind", "value"]);
    // At 160, 7 leaves the queue and 5 enters it; at 190, 8 leaves and 6 enters.
    assert_eq!(counters(0), ["110 ready-queue 1", "165 ready-queue 2"]);
    // 7 may have replaced 6 on LWP 71 in the gap: only threads known to be in the queue count.
    let lossy = ["110 ready-queue 1", "120 ready-queue 0", "160 ready-queue 1", "165 ready-queue 2"];
    assert_eq!(counters(3), lossy);
}
