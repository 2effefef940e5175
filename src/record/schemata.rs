//! Applies the schemata of a recording: tracepoints for the kernel, keys for the program, and entries in the manifest.

use std::env;

use anyhow::{Result, bail};
use fkt_ingest::live::RecorderOptions;
use sigmund_merge::{Manifest, RecordedSchema};
use sigmund_schemata::{Schema, Tracepoint, Union};

use super::kernel::{Kernel, has_event, kernel_has};
use crate::{
    cli::{KernelArgs, RecordArgs},
    output::{counted, notice},
};

/// Checks that no two different schemata have the same name. In the super-trace, schemata are found by their names.
pub(super) fn check_names(schemata: &[Schema]) -> Result<()> {
    for (place, schema) in schemata.iter().enumerate() {
        let is_another = |other: &&Schema| other.name == schema.name && other.text != schema.text;
        if schemata[..place].iter().any(|other| is_another(&other)) {
            bail!("--schema: expected one schema called {}, found two that differ", schema.name);
        }
    }
    Ok(())
}

/// Sets the tracepoints: those of the schemata, and those that options add to the usual ones. Returns optional
/// tracepoints that the kernel does not have.
pub(super) fn choose_tracepoints(
    schemata: &[Schema],
    args: &KernelArgs,
    options: &mut RecorderOptions,
) -> Result<Vec<String>> {
    if schemata.is_empty() {
        return Ok(Vec::new());
    }
    let (union, usual) = (Union::of(schemata), RecorderOptions::default());
    let (mut machine, mut program, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (events, chosen) in [(union.machine, &mut machine), (union.program, &mut program)] {
        for event in events {
            if event.optional && kernel_has(&event.event) == Some(false) {
                missing.push(event.event);
                continue;
            }
            has_event(&named_at(schemata, &event), &event.event)?;
            chosen.push(event.event);
        }
    }
    // Events that options name are recorded, even if they are usual ones.
    let unusual = options.machine_events.iter().filter(|event| !usual.machine_events.contains(event));
    let conditional = args.filter.iter().map(|filter| &filter.event);
    for event in args.kernel_event.iter().chain(conditional).chain(unusual) {
        if !machine.contains(event) && !program.contains(event) {
            let is_of_program = usual.program_events.contains(event);
            let chosen = if is_of_program { &mut program } else { &mut machine };
            chosen.push(event.clone());
        }
    }
    (options.machine_events, options.program_events) = (machine, program);
    Ok(missing)
}

/// The place where a schema names a tracepoint: `mine.toml:4:`.
fn named_at(schemata: &[Schema], event: &Tracepoint) -> String {
    let named = |schema: &Schema| {
        let mut named = schema.machine.iter().chain(&schema.program);
        let line = named.find(|other| other.event == event.event)?.line?;
        Some(format!("{}:{line}:", schema.place))
    };
    schemata.iter().find_map(named).unwrap_or_else(|| "--schema".into())
}

/// The key mask for the program: that of the schemata, unless the user has set one.
pub(super) fn keys(args: &RecordArgs) -> Option<String> {
    let is_given = [fut::ENV_KEYMASK, fut::ENV_KEYMASK_FILE].iter().any(|name| env::var_os(name).is_some());
    (!args.schema.is_empty() && !is_given).then(|| Union::of(&args.schema).keys)
}

/// Writes the schemata to the manifest, and reports which of their tracepoints are not recorded.
pub(super) fn describe(args: &RecordArgs, kernel: &Kernel, manifest: &mut Manifest) {
    let schema = |schema: &Schema| RecordedSchema { name: schema.name.clone(), text: schema.text.clone() };
    manifest.schemata = args.schema.iter().map(schema).collect();
    manifest.schemata.dedup();
    manifest.missing_tracepoints = kernel.missing_tracepoints().to_vec();
    if !manifest.missing_tracepoints.is_empty() {
        let missing = &manifest.missing_tracepoints;
        let count = counted(missing.len() as u64, "tracepoint");
        notice(&format!(
            "not recorded, since this kernel does not have them: {count}: {}",
            missing.join(", ")
        ));
    }
    let has_keys = args.schema.iter().any(|schema| !schema.keys.is_empty());
    if has_keys && (args.pid.is_some() || args.all) {
        let keys = Union::of(&args.schema).keys;
        notice(&format!("running programs keep their keys: `sigmund ctl PID keys {keys}` switches them"));
    }
}
