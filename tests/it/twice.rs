//! The same input, given twice: it is merged once, and the command names both.

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::{
    kernel,
    sigmund::{Sigmund, figure, program, user_traces},
};

const COUNT: &str = "SELECT count(*) FROM events";

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Merges them, and gives the number of events and what the command reported.
fn merged(sigmund: &Sigmund, inputs: &[&str]) -> (i64, String) {
    let said = sigmund.run(["merge"].iter().chain(inputs).chain(&["-o", "out.supertrace", "--force"]));
    assert_eq!(said.status, 0, "{said:?}");
    (sigmund.number("out.supertrace", COUNT), said.stderr)
}

#[test]
fn a_run_and_a_part_or_a_copy_of_it_are_merged_once() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "--no-merge", "-o", "RUN", "--", program(), "sumtime", "8", "2", "10"]).found();
    let user = user_traces(&sigmund.path("RUN")).remove(0);
    let user = format!("RUN/{}", user.file_name().unwrap().to_str().unwrap());
    copy_folder(&sigmund.path("RUN"), &sigmund.path("COPY"));
    fs::copy(sigmund.path("RUN/kernel.dat"), sigmund.path("copy.dat")).unwrap();
    symlink("RUN/kernel.dat", sigmund.path("link.dat")).unwrap();
    fs::hard_link(sigmund.path(&user), sigmund.path("hard.fut")).unwrap();
    let (alone, said) = merged(&sigmund, &["RUN"]);
    assert!(alone > 1000 && !said.contains("left out"), "{said}");
    for (second, parts) in [
        ("RUN", &["RUN/kernel.dat", &user][..]),
        ("RUN/kernel.dat", &["RUN/kernel.dat"]),
        (&user, &[&user]),
        ("COPY", &["RUN/kernel.dat", "COPY/kernel.dat", &user, &user.replace("RUN", "COPY")]),
        ("copy.dat", &["RUN/kernel.dat", "copy.dat"]),
        ("link.dat", &["RUN/kernel.dat", "link.dat"]),
        ("hard.fut", &[&user, "hard.fut"]),
    ] {
        for inputs in [["RUN", second], [second, "RUN"]] {
            let (events, said) = merged(&sigmund, &inputs);
            assert_eq!(events, alone, "{inputs:?}: {said}");
            assert!(said.contains("left out, because it"), "{inputs:?}: {said}");
            for part in parts {
                assert!(said.contains(part), "{inputs:?}: {part} in {said}");
            }
            assert!(!sigmund.fact("out.supertrace", "left_out").is_empty(), "{inputs:?}");
        }
    }
    // What is there beside it is merged.
    let (events, said) = merged(&sigmund, &["RUN/kernel.dat", &user, "COPY"]);
    assert_eq!(events, alone, "{said}");
}

#[test]
fn a_folder_of_ctf_is_merged_once_and_refused_if_only_a_part_of_it_is_given_before() {
    let sigmund = Sigmund::with_listing("t", &figure(3));
    sigmund.run(["export", "t.supertrace", "--format", "ctf", "-o", "A"]).found();
    copy_folder(&sigmund.path("A"), &sigmund.path("B"));
    symlink("A", sigmund.path("link")).unwrap();
    let (alone, _) = merged(&sigmund, &["A"]);
    assert!(alone > 10);
    for second in ["A", "B", "link"] {
        let (events, said) = merged(&sigmund, &["A", second]);
        assert_eq!(events, alone, "{second}: {said}");
        assert!(said.contains(&format!("warning: {second}: left out, because it")), "{second}: {said}");
    }
    // One that has only some of its files in common is neither the same nor another.
    let streams = fs::read_dir(sigmund.path("B")).unwrap().map(|entry| entry.unwrap().file_name());
    let stream = streams.filter(|name| name != "metadata").min().unwrap();
    let path = sigmund.path("B").join(stream);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let said = sigmund.run(["merge", "A", "B", "-o", "out.supertrace", "--force"]);
    said.complained(&[
        "B: folder: expected a trace of which no file is given twice",
        "holds the same bytes as A/",
    ]);
}

#[test]
fn the_same_listing_under_two_names_is_merged_once() {
    let sigmund = Sigmund::new();
    sigmund.write("one.tsv", figure(2).as_bytes());
    sigmund.write("two.tsv", figure(2).as_bytes());
    let (events, said) = merged(&sigmund, &["one.tsv", "two.tsv"]);
    assert_eq!(events, 6, "{said}");
    assert!(
        said.contains("warning: two.tsv: left out, because it holds the same bytes as one.tsv"),
        "{said}"
    );
    // Another one is another one.
    sigmund.write("two.tsv", figure(2).replace("97615576", "97615577").as_bytes());
    assert_eq!(merged(&sigmund, &["one.tsv", "two.tsv"]).0, 12);
}
