//! A trace.dat of version 6, as trace-cmd writes it, with the kernel events of the world.

use super::world::{EXIT_GROUP, Event, FUTEX, LwpIs, What};

const PAGE: usize = 4096;

/// One page of a CPU's ring buffer.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) cpu: u32,
    pub(crate) time: u64,
    records: Vec<u8>,
    /// Events that were lost before it, counted or not.
    pub(crate) lost_before: Option<Option<u64>>,
    pub(crate) damaged: bool,
}

/// Name, fields behind the common ones (name, size): each field begins at a multiple of its size.
type Format = (&'static str, &'static [(&'static str, usize)]);
const FORMATS: [Format; 17] = [
    ("sched_switch", &[("prev_pid", 4), ("prev_state", 8), ("next_pid", 4)]),
    ("sched_wakeup", &[("pid", 4), ("target_cpu", 4)]),
    ("sched_wakeup_new", &[("pid", 4), ("target_cpu", 4)]),
    ("sched_process_fork", &[("parent_pid", 4), ("child_pid", 4)]),
    ("sched_process_exit", &[("pid", 4)]),
    ("irq_handler_entry", &[("irq", 4)]),
    ("irq_handler_exit", &[("irq", 4)]),
    ("sys_enter", &[("id", 8), ("args0", 8), ("args1", 8)]),
    ("sys_exit", &[("id", 8), ("ret", 8)]),
    ("softirq_raise", &[("vec", 4)]),
    ("sched_waking", &[("pid", 4), ("target_cpu", 4)]),
    ("sched_migrate_task", &[("pid", 4), ("dest_cpu", 4)]),
    ("task_newtask", &[("pid", 4), ("clone_flags", 8)]),
    // Calls whose names say more.
    ("sys_enter_futex", &[("__syscall_nr", 8), ("uaddr", 8), ("op", 8)]),
    ("sys_exit_futex", &[("__syscall_nr", 8), ("ret", 8)]),
    ("sys_enter_exit_group", &[("__syscall_nr", 8), ("error_code", 8)]),
    ("sched_process_exec", &[("pid", 4), ("old_pid", 4)]),
];
const FIRST_ID: usize = 300;

/// The name of a kernel event.
pub(super) fn name(what: What) -> &'static str {
    FORMATS[kind(what)].0
}

fn kind(what: What) -> usize {
    match what {
        What::Switch { .. } => 0,
        What::Wakeup { .. } => 1,
        What::Fork(_) => 3,
        What::Exit => 4,
        What::IrqEntry => 5,
        What::IrqExit => 6,
        What::SyscallEnter { number: FUTEX, .. } => 13,
        What::SyscallExit(FUTEX) => 14,
        What::SyscallEnter { number: EXIT_GROUP, .. } => 15,
        What::SyscallEnter { .. } => 7,
        What::SyscallExit(_) => 8,
        What::Waking(_) => 10,
        What::Migrate { .. } => 11,
        What::NewTask { .. } => 12,
        What::Exec { .. } => 16,
        _ => 9,
    }
}

impl Page {
    /// A page with these events of one CPU.
    pub(super) fn of(events: &[&Event]) -> Page {
        let (cpu, time) = (events[0].cpu, events[0].tick);
        let mut page = Page { cpu, time, records: Vec::new(), lost_before: None, damaged: false };
        let mut last = time;
        for event in events {
            let mut delta = event.tick - last;
            last = event.tick;
            if delta >= 1 << 27 {
                let extend = [30 | ((delta as u32) << 5), (delta >> 27) as u32];
                page.records.extend(extend.into_iter().flat_map(u32::to_le_bytes));
                delta = 0;
            }
            let data = record(event);
            page.records.extend(((data.len() as u32 / 4) | ((delta as u32) << 5)).to_le_bytes());
            page.records.extend(data);
        }
        assert!(page.records.len() <= PAGE - 24, "too many events for a page");
        page
    }

    fn encode(&self) -> Vec<u8> {
        let mut commit = self.records.len() as u64;
        if let Some(count) = self.lost_before {
            commit |= (1 << 31) | if count.is_some() { 1 << 30 } else { 0 };
        }
        if self.damaged {
            commit |= 0xf_ffff;
        }
        let mut bytes = [self.time, commit].map(u64::to_le_bytes).concat();
        bytes.extend(&self.records);
        bytes.extend(self.lost_before.flatten().unwrap_or(0).to_le_bytes());
        bytes.resize(PAGE, 0);
        bytes
    }
}

fn record(event: &Event) -> Vec<u8> {
    let flags = match event.context {
        "softirq" => 0x10,
        "irq" => 0x08,
        "nmi" => 0x40,
        _ => 0,
    };
    let kind = kind(event.what);
    let mut data = ((FIRST_ID + kind) as u16).to_le_bytes().to_vec();
    data.extend([flags, 0]);
    data.extend(event.lwp.to_le_bytes());
    let values = match event.what {
        What::Switch { left, next } => vec![event.lwp.into(), prev_state(left), next.into()],
        What::Wakeup { lwp, cpu } => vec![lwp.into(), cpu.into()],
        What::Fork(child) => vec![event.lwp.into(), child.into()],
        What::Exit => vec![event.lwp.into()],
        What::Exec { old } => vec![event.lwp.into(), old.into()],
        What::IrqEntry | What::IrqExit => vec![24],
        What::Waking(lwp) => vec![lwp.into(), 0],
        What::Migrate { lwp, cpu } => vec![lwp.into(), cpu.into()],
        What::NewTask { lwp, in_own_process } => vec![lwp.into(), if in_own_process { 0x1_0000 } else { 17 }],
        What::SyscallEnter { number, args } => vec![number as u64, args[0], args[1]],
        What::SyscallExit(number) => vec![number as u64, returned(number)],
        _ => vec![3_u64],
    };
    for ((_, size), value) in FORMATS[kind].1.iter().zip(values) {
        data.resize(data.len().next_multiple_of(*size), 0);
        data.extend(&value.to_le_bytes()[..*size]);
    }
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

/// What a system call returns.
pub(super) fn returned(number: i64) -> u64 {
    number as u64 + 1000
}

fn prev_state(left: LwpIs) -> u64 {
    match left {
        LwpIs::Sleeping => 1,
        LwpIs::DiskSleep => 2,
        LwpIs::Dead => 0x10,
        _ => 0,
    }
}

fn format((index, (name, fields)): (usize, &Format)) -> String {
    let mut text = format!("name: {name}\nID: {}\nformat:\n", FIRST_ID + index);
    let common =
        [("common_type", 0, 2), ("common_flags", 2, 1), ("common_preempt_count", 3, 1), ("common_pid", 4, 4)];
    let mut at = 8_usize;
    let own = fields.iter().map(|(name, size)| {
        let offset = at.next_multiple_of(*size);
        at = offset + size;
        (*name, offset, *size)
    });
    for (name, offset, size) in common.into_iter().chain(own) {
        text += &format!("\tfield:int {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
    }
    text + "\nprint fmt: \"\"\n"
}

/// The file.
pub(super) fn write(cpus: u32, pages: &[Page]) -> Vec<u8> {
    let sized = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut file = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
    file.extend((PAGE as u32).to_le_bytes());
    let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    file.extend(b"header_page\0");
    file.extend(sized(page));
    file.extend(b"header_event\0");
    file.extend(sized(""));
    file.extend(0_u32.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    file.extend(b"sched\0");
    file.extend((FORMATS.len() as u32).to_le_bytes());
    FORMATS.iter().enumerate().for_each(|declared| file.extend(sized(&format(declared))));
    // No kallsyms, no printk formats, no command lines.
    file.extend([0; 4 + 4 + 8]);
    file.extend(cpus.to_le_bytes());
    file.extend(b"options  \0\0\0flyrecord\0");

    let clock = sized("[x86-tsc]");
    let mut at = (file.len() + 16 * cpus as usize + clock.len()).next_multiple_of(PAGE);
    let mut body = Vec::new();
    for cpu in 0..cpus {
        let pages: Vec<u8> = pages.iter().filter(|page| page.cpu == cpu).flat_map(Page::encode).collect();
        file.extend((at as u64).to_le_bytes());
        file.extend((pages.len() as u64).to_le_bytes());
        at += pages.len();
        body.extend(pages);
    }
    file.extend(clock);
    file.resize(file.len().next_multiple_of(PAGE), 0);
    file.extend(body);
    file
}
