//! One line: the LWP, the CPU, the time, and the event.
//!
//! ```text
//!   comm-pid (tgid) [cpu] flags time: name: text
//!
//!             <idle>-0       [001] d..2.  1234.567890: sched_switch: prev_comm=swapper/1 …      trace, trace_pipe
//!               bash-1994    (   1994) [000] .....  1234.567890: sys_exit: NR 1 = 1             with the TGID
//!          hackbench-17683 [001]   982.313702: sys_exit:             NR 1 = 1                   trace-cmd report
//!                pth-28003 [000]2555020480040: sys_exit:             NR 334 = 0                 in ticks
//! ```
//! The third flag is the context (Documentation/trace/ftrace.rst, v6.12): `Z` or `z` an NMI, `H` or `h` an interrupt,
//! `s` a softirq.

use sigmund_model::{Context, Cpu, Lwp};

/// A longer word is not the name of an event.
const MAX_NAME: usize = 128;

/// The CPU is within this many bytes: it follows a name of 15 bytes, two numbers, and at most the name of an instance.
const MAX_PREFIX: usize = 320;

/// A line that is an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The name of the LWP; may be `<...>`.
    pub(super) comm: &'a [u8],
    pub(super) lwp: Lwp,
    pub(super) cpu: Cpu,
    /// The third flag, if the line has flags.
    pub(super) flag: Option<u8>,
    pub(super) time: PrintedTime,
    /// Empty if the line has no name.
    pub(super) name: &'a [u8],
    pub(super) text: &'a [u8],
}

/// A time as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintedTime {
    /// Seconds with a fraction.
    Nanos(u64),
    /// A whole number.
    Ticks(u64),
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:0 [12 EVENTS DROPPED]`, `CPU:0 [EVENTS DROPPED]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) cpu: Cpu,
    pub(super) count: Option<u64>,
}

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let (comm, lwp, cpu, rest) = lwp_and_cpu(line)?;
        let end = memchr::memchr(b':', rest)?;
        let (when, rest) = (&rest[..end], rest[end + 1..].trim_ascii_start());
        let mut words = when.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (first, second) = (words.next()?, words.next());
        if words.next().is_some() {
            return None;
        }
        let (flags, time) = second.map_or((None, first), |second| (Some(first), second));
        if flags.is_some_and(|flags| !(3..=6).contains(&flags.len())) {
            return None;
        }
        let (name, text) = name_and_text(rest);
        let flag = flags.and_then(|flags| flags.get(2)).copied();
        Some(Line { comm, lwp, cpu, flag, time: PrintedTime::parse(time)?, name, text })
    }

    /// The context of the CPU, as far as this line shows it.
    pub(super) fn context(&self) -> Context {
        match self.flag {
            Some(b'Z' | b'z') => Context::Nmi,
            Some(b'H' | b'h') => Context::Irq,
            Some(b's') => Context::Softirq,
            _ if self.lwp == Lwp::IDLE => Context::Idle,
            _ => Context::Task,
        }
    }
}

/// Name and LWP, the CPU, and the rest. The name may contain brackets.
fn lwp_and_cpu(line: &[u8]) -> Option<(&[u8], Lwp, Cpu, &[u8])> {
    for open in memchr::memchr_iter(b'[', line).take_while(|open| *open <= MAX_PREFIX) {
        let after = &line[open + 1..];
        let len = after.iter().take_while(|b| b.is_ascii_digit()).count();
        let is_cpu =
            (1..=9).contains(&len) && after.get(len) == Some(&b']') && open > 0 && line[open - 1] == b' ';
        if let Some((comm, lwp)) = is_cpu.then(|| comm_and_lwp(&line[..open])).flatten() {
            let cpu = number(&after[..len])?;
            return Some((comm, lwp, Cpu(cpu as u32), &after[len + 1..]));
        }
    }
    None
}

/// `  bash-1994   (   1994) `, or `instance:   bash-1994 `. A name at the start of the line is that of a buffer,
/// because names of LWPs are padded to one byte more than their maximum.
fn comm_and_lwp(name_and_pid: &[u8]) -> Option<(&[u8], Lwp)> {
    let instance =
        name_and_pid.iter().position(|b| *b == b' ').filter(|end| *end > 0 && name_and_pid[end - 1] == b':');
    let mut name_and_pid = name_and_pid[instance.unwrap_or(0)..].trim_ascii();
    if name_and_pid.ends_with(b")") {
        let open = memchr::memrchr(b'(', name_and_pid)?;
        name_and_pid = name_and_pid[..open].trim_ascii_end();
    }
    let dash = memchr::memrchr(b'-', name_and_pid)?;
    let pid = number(&name_and_pid[dash + 1..]).and_then(|pid| u32::try_from(pid).ok())?;
    Some((name_and_pid[..dash].trim_ascii_start(), Lwp(pid)))
}

/// The name of an event ends with a colon; a line of the function tracer has none.
fn name_and_text(rest: &[u8]) -> (&[u8], &[u8]) {
    let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    match rest.get(len) {
        Some(b':') if (1..=MAX_NAME).contains(&len) => (&rest[..len], rest[len + 1..].trim_ascii()),
        _ => (&[], rest.trim_ascii()),
    }
}

impl PrintedTime {
    fn parse(word: &[u8]) -> Option<PrintedTime> {
        let Some(dot) = memchr::memchr(b'.', word) else { return Some(PrintedTime::Ticks(number(word)?)) };
        let (seconds, fraction) = (number(&word[..dot])?, &word[dot + 1..]);
        let scale = 9u32.checked_sub(fraction.len() as u32)?;
        let nanos = number(fraction)? * 10u64.pow(scale);
        Some(PrintedTime::Nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?))
    }
}

impl Lost {
    pub(super) fn parse(line: &[u8]) -> Option<Lost> {
        let rest = line.strip_prefix(b"CPU:")?;
        let len = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let cpu = number(&rest[..len]).and_then(|cpu| u32::try_from(cpu).ok())?;
        let text = rest[len..].trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
        let known =
            text.ends_with(b"EVENTS DROPPED") || (text.starts_with(b"LOST ") && text.ends_with(b" EVENTS"));
        let count = text.split(|b| *b == b' ').find_map(number);
        known.then_some(Lost { cpu: Cpu(cpu), count })
    }
}

/// Decimal digits only.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Line<'_> {
        Line::parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn each_form_of_a_line_is_read() {
        let line =
            parse("          <idle>-0       [001] d.h2.  1234.567890: irq_handler_entry: irq=24 name=eth0");
        assert_eq!((line.comm, line.lwp, line.cpu), (&b"<idle>"[..], Lwp(0), Cpu(1)));
        assert_eq!((line.flag, line.time), (Some(b'h'), PrintedTime::Nanos(1_234_567_890_000)));
        assert_eq!((line.name, line.text), (&b"irq_handler_entry"[..], &b"irq=24 name=eth0"[..]));
        assert_eq!(line.context(), Context::Irq);

        let line = parse(" my [0] prog-12-1994    (   1994) [000]   982.313702: sys_exit:        NR 1 = 1");
        assert_eq!((line.comm, line.lwp, line.flag), (&b"my [0] prog-12"[..], Lwp(1994), None));
        let line = parse("             pth-28003 [000]2555020480040: sys_exit:             NR 334 = 0");
        assert_eq!((line.time, line.text), (PrintedTime::Ticks(2_555_020_480_040), &b"NR 334 = 0"[..]));
        let line = parse("of me:-instance:  bash-7 [001] 1.5: x:");
        assert_eq!(line.comm, b"of me:-instance:  bash");
        let line = parse("instance:           bash-7 [001] 1.5: x:");
        assert_eq!(line.comm, b"bash");
        let line = parse("  kworker/0:2-9895 (-------) [000] ...1  1.5: mutex_lock <-do_work");
        assert_eq!(
            (line.name, line.text, line.time),
            (&b""[..], &b"mutex_lock <-do_work"[..], PrintedTime::Nanos(1_500_000_000))
        );
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "cpus=2",
            "USER\t51\t27\t2",
            "a-1 [000]",
            "a-1 [x] 1.5: b:",
            "a [000] 1.5: b:",
            "a-1 [0] 1.5.6: b:",
            "a-1 [0] d..1 x 1.5: b:",
        ] {
            assert_eq!(Line::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn marks_of_lost_events_have_a_count_or_none() {
        let parse = |line: &str| Lost::parse(line.as_bytes());
        let lost = |cpu, count| Some(Lost { cpu: Cpu(cpu), count });
        assert_eq!(parse("CPU:1 [LOST 12 EVENTS]"), lost(1, Some(12)));
        assert_eq!(parse("CPU:0 [178 EVENTS DROPPED]"), lost(0, Some(178)));
        assert_eq!(parse("CPU:0 [EVENTS DROPPED]"), lost(0, None));
        assert_eq!(parse("CPU:0 is empty"), None);
    }
}
