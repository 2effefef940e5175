//! The LWPs of a process in another PID namespace: their numbers there and here.
//!
//! A process in another PID namespace records its LWPs with the numbers that `gettid` returns there. Kernel events have
//! the numbers of the initial namespace. `NSpid` in `/proc/PID/task/TID/status` lists both, the innermost last
//! (Documentation/filesystems/proc.rst).

use std::fs;

use sigmund_model::{Lwp, Pid};

/// For each LWP of a process: its number in the PID namespace of the process, and its number here. `None` if the
/// process is in the namespace of this process, has ended, or cannot be examined.
pub fn lwps_in_namespace(process: Pid) -> Option<Vec<(Lwp, Lwp)>> {
    let namespace = |who: &str| fs::read_link(format!("/proc/{who}/ns/pid")).ok();
    if namespace(&process.to_string())? == namespace("self")? {
        return None;
    }
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let numbers = tasks.filter_map(|task| numbers(&fs::read_to_string(task.path().join("status")).ok()?));
    Some(numbers.collect())
}

/// The last and the first number of the `NSpid` line.
fn numbers(status: &str) -> Option<(Lwp, Lwp)> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
    let here = numbers.next()?.ok()?;
    let inside = numbers.next_back()?.ok()?;
    Some((Lwp(inside), Lwp(here)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_number_is_the_last_and_the_number_here_the_first() {
        assert_eq!(numbers("Name:\tx\nNSpid:\t4711\t38\t5\nNSpgid:\t1\t2\n"), Some((Lwp(5), Lwp(4711))));
        // In one namespace there is one number.
        assert_eq!(numbers("Name:\tx\nNSpid:\t4711\n"), None);
        assert_eq!(numbers("Name:\tx\n"), None);
        assert_eq!(lwps_in_namespace(Pid(std::process::id())), None);
    }
}
