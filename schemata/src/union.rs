//! What several schemata record in total.

use crate::{Schema, Tracepoint};

/// Without these, events cannot be assigned to LWPs and processes.
pub(crate) const ALWAYS: [&str; 5] = [
    "sched:sched_switch",
    "sched:sched_process_fork",
    "task:task_newtask",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
];

/// Everything that at least one of several schemata records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Union {
    /// Tracepoints of all LWPs, including those that every recording needs.
    pub machine: Vec<Tracepoint>,
    /// Tracepoints of the program only.
    pub program: Vec<Tracepoint>,
    /// The key mask, as `FUT_KEYMASK` takes it.
    pub keys: String,
}

impl Union {
    /// A tracepoint of the machine for one and of the program for another is of the machine; one that a kernel may lack for
    /// one and not for another may not be lacking.
    pub fn of(schemata: &[Schema]) -> Union {
        let mut union = Union::default();
        for event in ALWAYS {
            add(&mut union.machine, &Tracepoint { event: event.into(), optional: false, line: None });
        }
        schemata.iter().flat_map(|schema| &schema.machine).for_each(|event| add(&mut union.machine, event));
        for event in schemata.iter().flat_map(|schema| &schema.program) {
            let is_of_machine = union.machine.iter().any(|other| other.event == event.event);
            add(if is_of_machine { &mut union.machine } else { &mut union.program }, event);
        }
        let mut keys: Vec<&str> = Vec::new();
        for schema in schemata {
            let own = schema.keys.iter().map(String::as_str);
            let usual = schema.keys.is_empty().then_some("default");
            own.chain(usual).for_each(|key| {
                if !keys.contains(&key) {
                    keys.push(key)
                }
            });
        }
        union.keys = keys.join(",");
        union
    }
}

fn add(events: &mut Vec<Tracepoint>, event: &Tracepoint) {
    match events.iter_mut().find(|other| other.event == event.event) {
        Some(known) => known.optional &= event.optional,
        None => events.push(event.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(kernel: &str) -> Schema {
        let question = "[[question]]\ntext = \"What?\"\nmeasure = \"summary\"\n";
        Schema::parse("test", &format!("name = \"a\"\nabout = \"A.\"\n{kernel}\n{question}")).unwrap()
    }

    #[test]
    fn schemata_add_up() {
        let one = schema(
            "[kernel]\nmachine = [\"a:b?\"]\nprogram = [\"c:d\", \"e:f?\"]\n[program]\nkeys = [\"locks\"]",
        );
        let two = schema("[kernel]\nmachine = [\"a:b\", \"c:d?\"]");
        let union = Union::of(&[one.clone(), two.clone()]);
        let shown = |events: &[Tracepoint]| {
            let suffix = |event: &Tracepoint| if event.optional { "?" } else { "" };
            events.iter().map(|event| format!("{}{}", event.event, suffix(event))).collect::<Vec<_>>()
        };
        assert_eq!(shown(&union.machine)[..5], ALWAYS.map(String::from));
        assert_eq!(shown(&union.machine)[5..], ["a:b", "c:d"]);
        assert_eq!(shown(&union.program), ["e:f?"]);
        assert_eq!(union.keys, "locks,default");
        assert_eq!(Union::of(&[two, one]).machine.len(), union.machine.len());
    }
}
