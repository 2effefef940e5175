//! Parses the text of an event into fields with names and values.
//!
//! ```text
//!   prev_comm=a b prev_pid=7 prev_state=S ==> next_comm=c …      names before `=`; a value extends to the next name
//!   vec=1 [action=TIMER]          runtime=19749 [ns]
//!   a b:7 [120] S ==> c:8 [120]   comm:7 [120] CPU:000           trace-cmd's own forms: sched_switch, sched_wakeup
//!   NR 59 (7ffd, 1, 2, 3, 4, 5)   NR 59 = -2                     system calls
//! ```

/// The form of a value, if its line determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is written.
    Plain,
    /// Hexadecimal digits without `0x`.
    Hex,
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) form: Form,
}

/// The name of the text before the first name.
pub(super) const TEXT: &[u8] = b"text";

/// Fields of a line beyond this number, and fields with longer names than this, are text of the previous field.
const MAX_PAIRS: usize = 64;
const MAX_NAME: usize = 64;

const ARGS: [&[u8]; 6] = [b"args0", b"args1", b"args2", b"args3", b"args4", b"args5"];

/// Clears `pairs` and fills it with the fields of this event.
pub(super) fn pairs<'a>(name: &[u8], text: &'a [u8], pairs: &mut Vec<Pair<'a>>) {
    pairs.clear();
    let known = match name {
        b"sched_switch" => switch(text, pairs),
        b"sched_wakeup" | b"sched_wakeup_new" | b"sched_waking" => wakeup(text, pairs),
        b"sys_enter" => sys_enter(text, pairs),
        b"sys_exit" => sys_exit(text, pairs),
        _ => None,
    };
    if known.is_none() {
        pairs.clear();
        named(text, pairs);
    }
}

fn plain<'a>(name: &'a [u8], value: &'a [u8]) -> Pair<'a> {
    Pair { name, value, form: Form::Plain }
}

/// `prev_comm:7 [120] S ==> next_comm:8 [120]`
fn switch<'a>(text: &'a [u8], pairs: &mut Vec<Pair<'a>>) -> Option<()> {
    let arrow = memchr::memmem::find(text, b" ==> ")?;
    let (prev, next) = (&text[..arrow], &text[arrow + 5..]);
    let (prev, next) = (task(prev)?, task(next)?);
    if !next.rest.is_empty() {
        return None;
    }
    pairs.extend([
        plain(b"prev_comm", prev.comm),
        plain(b"prev_pid", prev.pid),
        plain(b"prev_prio", prev.prio),
    ]);
    pairs.push(plain(b"prev_state", prev.rest));
    pairs.extend([
        plain(b"next_comm", next.comm),
        plain(b"next_pid", next.pid),
        plain(b"next_prio", next.prio),
    ]);
    Some(())
}

/// `comm:7 [120] CPU:000`, with ` success=1` before the CPU in some versions.
fn wakeup<'a>(text: &'a [u8], pairs: &mut Vec<Pair<'a>>) -> Option<()> {
    let Task { comm, pid, prio, rest } = task(text)?;
    pairs.extend([plain(b"comm", comm), plain(b"pid", pid), plain(b"prio", prio)]);
    let cpu = rest.iter().rposition(|b| *b == b':').map_or(&[][..], |at| &rest[at + 1..]);
    if !cpu.is_empty() {
        pairs.push(plain(b"target_cpu", cpu));
    }
    Some(())
}

/// `comm:7 [120] rest`
struct Task<'a> {
    comm: &'a [u8],
    pid: &'a [u8],
    prio: &'a [u8],
    rest: &'a [u8],
}

/// A comm may contain colons and blanks.
fn task(text: &[u8]) -> Option<Task<'_>> {
    let open = memchr::memmem::rfind(text, b" [")?;
    let close = open + memchr::memchr(b']', &text[open..])?;
    let colon = memchr::memrchr(b':', &text[..open])?;
    let (pid, prio) = (&text[colon + 1..open], &text[open + 2..close]);
    let digits = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(|b| b.is_ascii_digit() || *b == b'-');
    let rest = text[close + 1..].trim_ascii();
    (digits(pid) && digits(prio)).then_some(Task { comm: &text[..colon], pid, prio, rest })
}

/// `NR 59 (7ffd0dcee2c0, 8, …)`
fn sys_enter<'a>(text: &'a [u8], pairs: &mut Vec<Pair<'a>>) -> Option<()> {
    let (id, args) = split_once(text.strip_prefix(b"NR ")?, b' ')?;
    pairs.push(plain(b"id", id));
    let args = args.strip_prefix(b"(")?.strip_suffix(b")")?;
    for (name, value) in ARGS.iter().zip(args.split(|b| *b == b',')) {
        pairs.push(Pair { name, value: value.trim_ascii(), form: Form::Hex });
    }
    Some(())
}

/// `NR 59 = -2`
fn sys_exit<'a>(text: &'a [u8], pairs: &mut Vec<Pair<'a>>) -> Option<()> {
    let (id, ret) = split_once(text.strip_prefix(b"NR ")?, b' ')?;
    pairs.extend([plain(b"id", id), plain(b"ret", ret.strip_prefix(b"= ")?)]);
    Some(())
}

fn split_once(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(at, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// `name=value name=value`, and text before the first name.
fn named<'a>(text: &'a [u8], pairs: &mut Vec<Pair<'a>>) {
    let mut open: Option<(&[u8], usize)> = None;
    let mut text_end = text.len();
    for equals in memchr::memchr_iter(b'=', text) {
        let start = text[..equals]
            .iter()
            .rposition(|b| !(b.is_ascii_alphanumeric() || *b == b'_'))
            .map_or(0, |at| at + 1);
        let name = &text[start..equals];
        let begins = start == 0 || matches!(text[start - 1], b' ' | b'[' | b'(' | b',');
        if pairs.len() >= MAX_PAIRS {
            break;
        }
        let is_name = name.len() <= MAX_NAME
            && name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
            && begins;
        if !is_name || open.is_some_and(|(_, from)| start < from) {
            continue;
        }
        match open {
            Some((name, from)) => pairs.push(pair(name, &text[from..start])),
            None => text_end = start,
        }
        open = Some((name, equals + 1));
    }
    if let Some((name, from)) = open {
        pairs.push(pair(name, &text[from..]));
    }
    let before = text[..text_end].trim_ascii();
    if !before.is_empty() {
        pairs.push(plain(TEXT, before));
    }
}

/// A value without the separators before the next name: `==>`, brackets, commas, a unit.
fn pair<'a>(name: &'a [u8], value: &'a [u8]) -> Pair<'a> {
    let mut value = value.trim_ascii();
    for end in [&b"==>"[..], b"[", b"(", b",", b"[ns]"] {
        value = value.strip_suffix(end).unwrap_or(value).trim_ascii_end();
    }
    let closes = |open: u8, close: u8| value.last() == Some(&close) && !value.contains(&open);
    if closes(b'[', b']') || closes(b'(', b')') {
        value = &value[..value.len() - 1];
    }
    plain(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        pairs(name.as_bytes(), text.as_bytes(), &mut found);
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        found.iter().map(|pair| format!("{}={}", lossy(pair.name), lossy(pair.value))).collect()
    }

    #[test]
    fn both_forms_of_a_switch_have_the_same_fields() {
        let fields = [
            "prev_comm=a b:c",
            "prev_pid=7",
            "prev_prio=120",
            "prev_state=R+",
            "next_comm=swapper/1",
            "next_pid=0",
            "next_prio=120",
        ];
        assert_eq!(read("sched_switch", "a b:c:7 [120] R+ ==> swapper/1:0 [120]"), fields);
        let text = "prev_comm=a b:c prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=swapper/1 next_pid=0 next_prio=120";
        assert_eq!(read("sched_switch", text), fields);
    }

    #[test]
    fn values_end_where_the_next_name_begins() {
        assert_eq!(
            read("sched_wakeup", "kworker/0:2:9895 [120] CPU:000"),
            ["comm=kworker/0:2", "pid=9895", "prio=120", "target_cpu=000"]
        );
        assert_eq!(read("softirq_entry", "vec=1 [action=TIMER]"), ["vec=1", "action=TIMER"]);
        assert_eq!(
            read("sched_stat_runtime", "comm=pth x pid=12992 runtime=19749 [ns]"),
            ["comm=pth x", "pid=12992", "runtime=19749"]
        );
        assert_eq!(read("irq", "irq=24 name=a=b"), ["irq=24", "name=a=b"]);
        assert_eq!(read("x", "opened a file, fd=3"), ["fd=3", "text=opened a file,"]);
        assert_eq!(read("x", "nothing known"), ["text=nothing known"]);
        assert_eq!(read("x", ""), Vec::<String>::new());
    }

    #[test]
    fn system_calls_have_a_number_and_arguments_or_a_result() {
        assert_eq!(read("sys_enter", "NR 59 (7ffd, 0, a)"), ["id=59", "args0=7ffd", "args1=0", "args2=a"]);
        assert_eq!(read("sys_exit", "NR 59 = -2"), ["id=59", "ret=-2"]);
    }
}
