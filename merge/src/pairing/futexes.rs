//! Futexes: the system calls that wait for one, and the address.

/// The operation of `futex` without its flags (`FUTEX_CMD_MASK`, include/uapi/linux/futex.h, v6.12).
const COMMAND: i64 = !(128 | 256);

/// `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`, `FUTEX_WAIT_REQUEUE_PI`, `FUTEX_LOCK_PI2`.
const WAITS: [i64; 5] = [0, 6, 9, 11, 13];

/// The address of the futex that a system call waits for, if it waits for one. Arguments that were not recorded are 0.
pub(crate) fn awaited(call: &str, args: &[i64]) -> Option<i64> {
    let command = args.get(1).copied().unwrap_or(0) & COMMAND;
    match call {
        "futex" if WAITS.contains(&command) => args.first().copied(),
        "futex_wait" => args.first().copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_wait_have_an_address() {
        assert_eq!(awaited("futex", &[0x1000, 128]), Some(0x1000), "FUTEX_WAIT_PRIVATE");
        assert_eq!(
            awaited("futex", &[0x1000, 9 | 128 | 256]),
            Some(0x1000),
            "FUTEX_WAIT_BITSET, CLOCK_REALTIME"
        );
        assert_eq!(awaited("futex", &[0x1000]), Some(0x1000));
        assert_eq!(awaited("futex", &[0x1000, 1 | 128]), None, "FUTEX_WAKE");
        assert_eq!(awaited("read", &[0x1000, 0]), None);
    }
}
