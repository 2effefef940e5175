//! `sigmund check` on Pajé files, which it recognises by their content.

use serde_json::Value;

use crate::sigmund::{Sigmund, figure};

/// The paper's run as a Pajé file, with a name that says nothing.
fn exported() -> (Sigmund, String) {
    let sigmund = Sigmund::with_listing("paper", &figure(2));
    sigmund.run(["export", "paper.supertrace", "--format", "paje", "-o", "exported"]).found();
    let file = std::fs::read_to_string(sigmund.path("exported")).unwrap();
    (sigmund, file)
}

#[test]
fn an_exported_file_is_valid() {
    let (sigmund, file) = exported();
    let human = sigmund.run(["check", "exported"]).found();
    let lines = file.lines().count();
    assert!(human.starts_with(&format!("exported: valid Pajé: {lines} lines, ")), "{human}");

    let json: Value =
        serde_json::from_str(&sigmund.run(["check", "exported", "--format", "json"]).found()).unwrap();
    assert_eq!(json["faults"], Value::Array(Vec::new()));
    let events = &json["events"];
    assert!(events["PajeCreateContainer"].as_u64() > Some(0));
    assert_eq!(events["PajeCreateContainer"], events["PajeDestroyContainer"]);
}

// The last container is not destroyed; and a number that no declaration has.
#[test]
fn each_fault_has_its_line() {
    let (sigmund, file) = exported();
    let without_last = &file[..file.trim_end().rfind('\n').unwrap() + 1];
    let lines = without_last.lines().count();
    sigmund.write("broken", format!("# a comment\n\n{without_last}77 1.0 x\n").as_bytes());

    let said = sigmund.run(["check", "broken", "--format", "tsv"]);
    assert_eq!(said.status, 1, "{said:?}");
    let at = lines + 3;
    let found: Vec<Vec<&str>> = said.stdout.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(found[0], ["line", "kind", "what"]);
    assert_eq!(found[1][..2], [at.to_string().as_str(), "unknown-event"], "{said:?}");
    assert_eq!(found[2][..2], [at.to_string().as_str(), "not-destroyed"], "{said:?}");
    assert_eq!(found.len(), 3, "{said:?}");

    let said = sigmund.run(["check", "broken", "--list", "1"]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        said.stdout.starts_with(&format!("line {at}: event 77 is not declared\nand 1 more fault\n")),
        "{said:?}"
    );
}

#[test]
fn other_files_are_taken_for_super_traces_and_refused() {
    let (sigmund, _) = exported();
    sigmund.write("text", b"% not a declaration\n");
    assert_eq!(sigmund.run(["check", "text"]).status, 2);
    let said = sigmund.run(["check", "exported", "--only", "gaps"]);
    assert_eq!(said.status, 2, "{said:?}");
    assert!(said.stderr.contains("--only is for super-traces"), "{said:?}");
}
