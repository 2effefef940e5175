//! Programs in C, built with libfut, run, and merged: their probes, their functions by name, and their errors.

mod losses;
#[path = "../../../tests/common/skipped.rs"]
mod skipped;
#[path = "../../../../merge/tests/it/supertrace/mod.rs"]
#[allow(dead_code, unused_imports, reason = "tests of the merge need more of it")]
mod supertrace;
mod support;
mod trace_file;
mod undisturbed;

use std::{ffi::OsStr, path::Path};

use fut::{drain::Drain, shm::Arena};

use self::support::{Bench, Link, line_of, root, run};

const SORT: &str = "examples/c/sort.c";
const INSTRUMENTED: [&str; 2] = ["-g", "-finstrument-functions"];

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

#[test]
fn every_function_of_an_instrumented_program_has_its_name_and_line() {
    let Some(bench) = Bench::new() else { return };
    for link in [Link::Shared, Link::Static, Link::StaticNoPie] {
        let sort = bench.program(SORT, link, &INSTRUMENTED);
        let trace = bench.path("sort.fut");
        let output = run(&sort, &[trace.as_os_str()], &[]);
        // Two events are too early: the entry to `main`, and the probe before `fut_setup`.
        assert_eq!(text(&output.stdout), "sorted, 2 probes came too early", "{link:?}");
        let merged = bench.merged(&trace);

        let functions = merged.events(&["FUNC_ENTER", "FUNC_EXIT"], &["texts"]);
        let at = |function: &str, line: usize| format!("{function} at sort.c:{line}");
        // GCC counts a function from its opening brace on.
        let entry = |function: &str, beginning: &str| at(function, 1 + line_of(SORT, beginning));
        let call = |function: &str, line: &str| at(function, line_of(SORT, line));
        let first = format!(
            "FUNC_ENTER [{}, {}]",
            entry("sort", "static void sort"),
            call("main", "    sort(values, COUNT)")
        );
        let second = format!(
            "FUNC_ENTER [{}, {}]",
            entry("partition", "static long partition"),
            call("sort", "    long pivot = ")
        );
        assert_eq!(functions[..2], [first, second], "{link:?}");
        // `main` was entered before there was a recording, and left after it.
        let count = |what: &str| functions.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!(count("FUNC_ENTER"), count("FUNC_EXIT"), "{link:?}");
        assert!(count("FUNC_ENTER [swap at sort.c:") > 100, "{link:?}");

        let prof = merged.events(&["PROF_IN", "PROF_OUT"], &["texts"]);
        let out = line_of(SORT, "    PROF_OUT();");
        let expected = [
            format!("PROF_IN [{}]", call("is_sorted", "    PROF_IN();")),
            format!("PROF_OUT [{}]", at("is_sorted", out)),
        ];
        assert_eq!(prof, expected, "{link:?}");
        assert!(merged.lines("losses", &["detail"]).is_empty(), "{link:?}");
    }
}

#[test]
fn probes_have_the_codes_that_the_program_chose_and_the_names_it_gave_them() {
    let Some(bench) = Bench::new() else { return };
    let sort = bench.program(SORT, Link::Shared, &[]);
    let trace = bench.path("sort.fut");
    run(&sort, &[trace.as_os_str()], &[]);
    let merged = bench.merged(&trace);
    assert_eq!(merged.events(&["sorted"], &["code", "args"]), ["sorted 257 [100, 1]"]);
    // Declared after it was used.
    let pivots = merged.events(&["pivot"], &["code", "args"]);
    assert!(pivots.len() > 50 && pivots.iter().all(|line| line.starts_with("pivot 258 [")), "{pivots:?}");
    let undeclared = merged.events(&["undeclared"], &["args", "texts"]);
    assert_eq!(undeclared, ["undeclared [259, ?] [?, nobody declared this]"]);
    assert_eq!(merged.events(&["FUT_SETUP"], &["args"]), ["FUT_SETUP [4294967295, 1]"]);
    let types = merged.lines("event_types", &["name", "field_names", "field_types"]);
    assert!(types.contains(&"pivot [place, value] [u64, i64]".to_string()), "{types:?}");
}

#[test]
fn a_text_that_is_too_long_keeps_whole_characters_and_a_mark() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/long_text.c", Link::Shared, &[]);
    let trace = bench.path("text.fut");
    run(&program, &[trace.as_os_str()], &[]);
    let kept = bench.merged(&trace).events(&["text"], &["texts"]);
    assert_eq!(kept, [format!("text [{}]", "a".repeat(511)), format!("text [{}…]", "é".repeat(254))]);
}

#[test]
fn codes_of_c_and_of_rust_do_not_collide() {
    let Some(bench) = Bench::new() else { return };
    let keys = bench.program("fut/c/tests/programs/keys.c", Link::Static, &[]);
    let trace = bench.path("keys.fut");
    run(&keys, &[trace.as_os_str()], &[]);
    let merged = bench.merged(&trace);
    // Codes 1 and 2 of C; fut declares events of its own in Rust, which are numbered from 1, too.
    let own = merged.lines("event_types", &["code"]);
    assert!(["1", "2", "5"].iter().all(|code| own.contains(&code.to_string())), "{own:?}");
    let expected = ["1, 0", "1, 1", "2, 1", "2, 2", "2, 3", "1, 4"];
    let undeclared = merged.events(&["undeclared"], &["args"]);
    let seen: Vec<_> = undeclared.iter().map(|line| line[12..].trim_end_matches(']')).collect();
    let seen: Vec<_> =
        seen.iter().map(|args| args.split(", ").take(2).collect::<Vec<_>>().join(", ")).collect();
    assert_eq!(seen, expected, "key 0, both, key 1, key 1, key 0");
}

#[test]
fn keys_change_as_fut_keychange_says_and_a_wrong_change_changes_nothing() {
    let Some(bench) = Bench::new() else { return };
    let keys = bench.program("fut/c/tests/programs/keys.c", Link::Shared, &[]);
    let trace = bench.path("keys.fut");
    let output = run(&keys, &[trace.as_os_str()], &[]);
    assert_eq!(
        text(&output.stdout),
        "1 0 0 0 1 0 1 0 1",
        "too early, ok, …, wrong how, ok, second setup, ok, too late"
    );
}

#[test]
fn a_program_that_its_recorder_cannot_record_gets_the_answers_of_one_that_is_recorded() {
    let Some(bench) = Bench::new() else { return };
    let keys = bench.program("fut/c/tests/programs/keys.c", Link::Shared, &[]);
    let (trace, arenas) = (bench.path("keys.fut"), bench.path("arenas"));
    let answers = || {
        let output = run(&keys, &[trace.as_os_str()], &[(fut::ENV_ARENA_DIR, arenas.as_os_str())]);
        (text(&output.stdout).to_string(), text(&output.stderr).to_string())
    };
    let (unrecorded, said) = answers();
    assert_eq!(said.matches("fut: this program is not recorded: ").count(), 1, "{said}");
    std::fs::create_dir(&arenas).unwrap();
    assert_eq!(unrecorded, answers().0);
    assert!(!trace.exists());
}

/// Events 1 and 2 of `keys.c` in the trace.
fn recorded_with(bench: &Bench, program: &Path, environment: &[(&str, &OsStr)]) -> (usize, String) {
    let trace = bench.path("keys.fut");
    let output = run(program, &[trace.as_os_str()], environment);
    let first_round = |line: &String| line.contains(", 0");
    let events = bench.merged(&trace).events(&["undeclared"], &["args"]);
    (events.iter().filter(|line| first_round(line)).count(), text(&output.stderr).into())
}

#[test]
fn a_key_mask_from_outside_counts_and_a_malformed_one_changes_nothing() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/keys.c", Link::Shared, &[]);
    let file = bench.path("keys.txt");
    let from_file = [(fut::ENV_KEYMASK_FILE, file.as_os_str())];
    std::fs::write(&file, "# both\nFUT_KEYMASK0, FUT_KEYMASK1\n").unwrap();
    assert_eq!(recorded_with(&bench, &program, &[]).0, 1, "the program asks for key 0");
    let (events, said) = recorded_with(&bench, &program, &from_file);
    assert!(events == 2 && said.contains("fut_setup"), "{events}, {said}");

    std::fs::write(&file, "FUT_KEYMASK0\nFUT_KEYMASK1 FUT_KEYMASK77\n").unwrap();
    let (events, said) = recorded_with(&bench, &program, &from_file);
    let place = format!("fut: {}:2: expected a key (", file.display());
    assert!(said.starts_with(&place) && !said.contains("FUT_KEYMASK77"), "{said}");
    assert_eq!(events, 1, "as if there were no file");
    let (events, said) = recorded_with(&bench, &program, &[(fut::ENV_KEYMASK, OsStr::new("scheduler 0x"))]);
    assert!(events == 1 && said.starts_with("fut: FUT_KEYMASK:1: expected a key"), "{events}, {said}");
    let (events, said) = recorded_with(&bench, &program, &[(fut::ENV_KEYMASK_FILE, OsStr::new("/dev/zero"))]);
    assert!(events == 1 && said.starts_with("fut: /dev/zero: expected a file"), "{events}, {said}");
}

#[test]
fn a_set_user_id_program_in_c_obeys_no_variable() {
    use std::{os::unix::fs::PermissionsExt, process::Command};

    // SAFETY: takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return skipped::skipped("a set-user-ID program of root's needs root, and setpriv");
    }
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/keys.c", Link::Static, &[]);
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let (folder, secret, trace) = (bench.path("arenas"), bench.path("secret"), bench.path("keys.fut"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&secret, "root:$6$a-secret-of-roots:19000").unwrap();
    for (path, bits) in [(&folder, 0o777), (&secret, 0o600), (&program, 0o4755), (&bench.path(""), 0o755)] {
        mode(path, bits);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program).arg(&trace);
    command.env(fut::ENV_ARENA_DIR, &folder).env(fut::ENV_KEYMASK_FILE, &secret);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!text(&output.stderr).contains("secret"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "a recorder that nobody of this user's is");
    assert_eq!(text(&output.stdout), "1 0 0 0 1 0 1 0 1", "it records for itself");
}

#[test]
fn probes_before_setup_are_counted_and_dropped_and_cost_no_more_after_so_many() {
    let Some(bench) = Bench::new() else { return };
    let early = bench.program("fut/c/tests/programs/early.c", Link::Shared, &[]);
    let trace = bench.path("early.fut");
    for (probes, counted, active) in
        [("0", 0, "ffffffff"), ("1000", 1000, "ffffffff"), ("100000", 65536, "0")]
    {
        let output = run(&early, &[OsStr::new(probes), trace.as_os_str()], &[]);
        assert_eq!(text(&output.stdout), format!("{counted} {active}"));
        let merged = bench.merged(&trace);
        let kept =
            ["undeclared [2, 1, 2, 3, 4, 5, 6, 7, 8] []", "undeclared [3, 1, 2, 3, ?] [?, ?, ?, ?, four]"];
        assert_eq!(merged.events(&["undeclared"], &["args", "texts"]), kept);
        let setup = format!("FUT_SETUP [4294967295, {counted}]");
        assert_eq!(merged.events(&["FUT_SETUP"], &["args"]), [setup]);
    }
}

#[test]
fn an_event_declared_twice_with_different_fields_is_refused_with_both_places() {
    let Some(bench) = Bench::new() else { return };
    let twice = bench.program("fut/c/tests/programs/twice.c", Link::Shared, &[]);
    let output = run(&twice, &[], &[]);
    let (exists, invalid) = (-libc::EEXIST, -libc::EINVAL);
    let returned = format!("0 0 {exists} {invalid} {invalid} {invalid} {invalid}");
    assert_eq!(text(&output.stdout), returned);
    let said: Vec<&str> = text(&output.stderr).lines().collect();
    let line = |beginning: &str| line_of("fut/c/tests/programs/twice.c", beginning);
    let source = root().join("fut/c/tests/programs/twice.c");
    let place = |line: usize| format!("{}:{line}", source.display());
    assert!(
        said[0].starts_with(&format!(
            "fut: {}: expected message(len: u64, from: text)",
            place(line("    int other"))
        )),
        "{said:?}"
    );
    assert!(
        said[0]
            .contains(&format!("as declared at {}, found message(len: u64)", place(line("    int first")))),
        "{said:?}"
    );
    assert!(
        said[1].contains(&place(line("    int no_type"))) && said[1].contains(r#"found "len:u65""#),
        "{said:?}"
    );
    assert!(said[4].contains("expected a code from 1 to 0xfffffff, found 0x10000000"), "{said:?}");
}

/// The traces that programs leave in a recorder's folder.
fn drained(bench: &Bench, arenas: &Path) -> Vec<std::path::PathBuf> {
    let arenas = std::fs::read_dir(arenas).unwrap().map(|entry| entry.unwrap().path());
    let drain = |arena: std::path::PathBuf| {
        let trace = bench.path(&format!("user-{}.fut", arena.file_stem().unwrap().display()));
        Drain::new(Arena::open(&arena).unwrap(), &trace).unwrap().finish().unwrap();
        trace
    };
    arenas.map(drain).collect()
}

#[test]
fn under_a_recorder_a_program_needs_nothing_but_the_link() {
    let Some(bench) = Bench::new() else { return };
    for link in [Link::Shared, Link::Static] {
        let sort = bench.program(SORT, link, &INSTRUMENTED);
        let arenas = bench.path(&format!("arenas-{link:?}"));
        std::fs::create_dir(&arenas).unwrap();
        let output = run(&sort, &[], &[(fut::ENV_ARENA_DIR, arenas.as_os_str())]);
        assert_eq!(text(&output.stdout), "sorted, 0 probes came too early");
        let traces = drained(&bench, &arenas);
        let merged = bench.merged(&traces[0]);
        let functions = merged.events(&["FUNC_ENTER", "FUNC_EXIT"], &["texts"]);
        let main = format!("[main at sort.c:{}", 1 + line_of(SORT, "int main"));
        assert!(functions[0].starts_with(&format!("FUNC_ENTER {main}")), "{}", functions[0]);
        assert!(functions.last().unwrap().starts_with(&format!("FUNC_EXIT {main}")), "{functions:?}");
        assert_eq!(merged.events(&["LWP_DETACH"], &[]).len(), 1);
    }
}

#[test]
fn functions_of_a_library_that_is_loaded_late_have_names_too() {
    let Some(bench) = Bench::new() else { return };
    let loads = bench.program("fut/c/tests/programs/loads.c", Link::Shared, &INSTRUMENTED);
    let plugin = bench.library("fut/c/tests/programs/plugin.c", &INSTRUMENTED);
    let arenas = bench.path("arenas");
    std::fs::create_dir(&arenas).unwrap();
    run(&loads, &[plugin.as_os_str()], &[(fut::ENV_ARENA_DIR, arenas.as_os_str())]);
    let merged = bench.merged(&drained(&bench, &arenas)[0]);
    let line = line_of("fut/c/tests/programs/loads.c", "    return plugged");
    let plugged = format!("FUNC_ENTER [plugged at plugin.c:5, main at loads.c:{line}]");
    let entered = merged.events(&["FUNC_ENTER"], &["texts"]);
    assert_eq!(entered.last(), Some(&plugged), "{:?}", merged.lines("losses", &["detail"]));
}

#[test]
fn without_its_binary_or_its_symbols_a_function_keeps_its_address_and_the_losses_say_so_once() {
    let Some(bench) = Bench::new() else { return };
    let trace = bench.path("sort.fut");
    let notes = |sort: &Path| {
        run(sort, &[trace.as_os_str()], &[]);
        let merged = bench.merged(&trace);
        let entered = merged.events(&["FUNC_ENTER"], &["args", "texts"]);
        let notes = merged.lines("losses", &["kind", "severity", "detail"]);
        (entered[0].clone(), notes)
    };
    let stripped = bench.program(SORT, Link::Shared, &["-finstrument-functions", "-s"]);
    let (entered, losses) = notes(&stripped);
    assert!(entered.ends_with(" []"), "{entered}");
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert!(
        losses[0].starts_with("not-recorded note ") && losses[0].ends_with("it is stripped"),
        "{losses:?}"
    );

    let plain = bench.program(SORT, Link::Shared, &["-finstrument-functions", "-g0"]);
    assert!(notes(&plain).0.ends_with("[sort, main]"), "symbols, and no lines");
    let other = bench.program(SORT, Link::Shared, &["-finstrument-functions", "-O1", "-g"]);
    let kept = std::fs::read(&other).unwrap();
    run(&other, &[trace.as_os_str()], &[]);
    std::fs::write(&other, [&kept[..], b"longer"].concat()).unwrap();
    assert!(bench.merged(&trace).lines("losses", &["detail"]).is_empty(), "the same build id");
    bench.program(SORT, Link::Shared, &["-finstrument-functions", "-O2", "-g"]);
    let losses = bench.merged(&trace).lines("losses", &["detail"]);
    assert!(losses.len() == 1 && losses[0].contains("expected the build id"), "{losses:?}");
    std::fs::remove_file(&other).unwrap();
    let losses = bench.merged(&trace).lines("losses", &["detail"]);
    assert!(losses.len() == 1 && losses[0].contains("No such file"), "{losses:?}");
}

#[test]
fn the_child_of_a_program_that_records_itself_leaves_the_trace_to_its_parent() {
    let Some(bench) = Bench::new() else { return };
    let forks = bench.program("fut/c/tests/programs/forks.c", Link::Shared, &[]);
    let trace = bench.path("forks.fut");
    run(&forks, &[trace.as_os_str()], &[]);
    let merged = bench.merged(&trace);
    assert_eq!(merged.events(&["here"], &["args"]), ["here [1]", "here [3]", "here [4]"]);
    assert!(!merged.summary.is_damaged());
}

#[test]
fn symbols_that_were_split_off_are_found_by_the_link_to_them() {
    let Some(bench) = Bench::new() else { return };
    let sort = bench.program(SORT, Link::Static, &INSTRUMENTED);
    let objcopy = |arguments: &[&str]| {
        let mut command = std::process::Command::new("objcopy");
        let status = command.args(arguments).current_dir(sort.parent().unwrap()).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let name = sort.file_name().unwrap().to_str().unwrap();
    objcopy(&["--only-keep-debug", name, "split-off"]);
    objcopy(&["--strip-all", "--add-gnu-debuglink=split-off", name]);
    let trace = bench.path("sort.fut");
    run(&sort, &[trace.as_os_str()], &[]);
    let entered = || bench.merged(&trace).events(&["FUNC_ENTER"], &["texts"])[0].clone();
    let line = 1 + line_of(SORT, "static void sort");
    assert!(entered().starts_with(&format!("FUNC_ENTER [sort at sort.c:{line},")), "{}", entered());
    std::fs::remove_file(bench.path("split-off")).unwrap();
    assert_eq!(entered(), "FUNC_ENTER []");
}

/// LWPs that begin and end, each with its own probes: the library's thread-local is correct for each of them.
#[test]
fn every_probe_of_many_short_lived_threads_is_in_the_trace_or_counted() {
    let Some(bench) = Bench::new() else { return };
    for link in [Link::Shared, Link::Static] {
        let threads = bench.program("fut/c/tests/programs/threads.c", link, &["-pthread"]);
        let trace = bench.path("threads.fut");
        let output = run(&threads, &[trace.as_os_str()], &[]);
        let lost: usize = text(&output.stdout).parse().unwrap();
        let merged = bench.merged(&trace);
        let steps = merged.events(&["step"], &["args"]);
        let distinct: std::collections::HashSet<_> = steps.iter().collect();
        assert_eq!((steps.len(), distinct.len()), (8000 - lost, 8000 - lost), "{link:?}");
        assert_eq!(merged.events(&["LWP_DETACH"], &[]).len(), 800, "{link:?}");
    }
}

#[test]
fn an_installed_libfut_is_found_by_pkg_config() {
    let Some(bench) = Bench::new() else { return };
    if std::process::Command::new("pkg-config").arg("--version").output().is_err() {
        return skipped::skipped("needs pkg-config");
    }
    let prefix = bench.installed();
    for link in [["--shared", ""], ["--static", "-l:libfut.a"]] {
        let program = bench.path(&format!("sort{}", link[0]));
        let script = r#"
            set -e
            export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig"
            libs=$(pkg-config --libs $PKG_CONFIG_LINK fut)
            [ -z "$LIBRARY" ] || libs=$(echo "$libs" | sed "s/-lfut/$LIBRARY/")
            cc -g -finstrument-functions "$SOURCE" -o "$PROGRAM" $(pkg-config --cflags fut) $libs"#;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).env("PREFIX", &prefix).env("LIBRARY", link[1]);
        command.env("PKG_CONFIG_LINK", if link[1].is_empty() { "" } else { "--static" });
        command.env("SOURCE", root().join(SORT)).env("PROGRAM", &program);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lib = prefix.join("lib");
        let libraries = [("LD_LIBRARY_PATH", lib.as_os_str())];
        let environment = if link[1].is_empty() { &libraries[..] } else { &[] };
        let output = run(&program, &[bench.path("sort.fut").as_os_str()], environment);
        assert_eq!(text(&output.stdout), "sorted, 2 probes came too early");
    }
}

#[test]
fn threads_that_switch_different_keys_do_not_undo_each_others_changes() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/key_race.c", Link::Shared, &["-pthread"]);
    let output = run(&program, &[bench.path("keys.fut").as_os_str()], &[]);
    assert_eq!(text(&output.stdout), "0xff, found off 0 times");
}

#[test]
fn a_declaration_with_a_reserved_name_is_refused_and_a_record_that_does_not_fit_its_declaration_is_reported()
{
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/misfits.c", Link::Shared, &[]);
    let trace = bench.path("misfits.fut");
    let output = run(&program, &[trace.as_os_str()], &[]);
    assert_eq!(text(&output.stdout), format!("-{} -{}", libc::EINVAL, libc::EINVAL));
    let said: Vec<&str> = text(&output.stderr).lines().collect();
    assert!(said[0].contains("misfits.c:8: ") && said[0].contains("found USER_CONTEXT_SWITCH"), "{said:?}");
    assert!(said[1].contains("misfits.c:9: ") && said[1].contains("found FUNC_ENTER"), "{said:?}");

    let merged = bench.merged(&trace);
    assert_eq!(
        merged.events(&["numbers_and_text"], &["args", "texts"]),
        [
            "numbers_and_text [7, 8, ?] [?, ?, fits]",
            "numbers_and_text [?, ?, ?] [?, ?, no numbers]",
            "numbers_and_text [7, 8, ?, 9] [?, ?, too many]",
            "numbers_and_text [7, 8, ?, 9] []",
        ]
    );
    assert_eq!(
        merged.events(&["number"], &["args", "texts"]),
        ["number [7, ?] [?, not declared]", "number [7] []"]
    );
    assert_eq!(merged.events(&["undeclared"], &["args"]), ["undeclared [3, 9]"]);
    let losses = merged.lines("losses", &["kind", "severity", "count", "detail"]);
    let notes = [
        ("contradiction note 1 ", "number(a: u64), found 1 number and a text"),
        ("contradiction note 3 ", "numbers_and_text(a: u64, b: u64, c: text), found 0 numbers and a text"),
    ];
    assert_eq!(losses.len(), 2, "{losses:?}");
    for (loss, (begin, end)) in losses.iter().zip(notes) {
        assert!(loss.starts_with(begin) && loss.contains(end), "{loss}");
    }
}

#[test]
fn the_header_has_no_warnings_at_the_strictest_level_of_aliasing() {
    let Some(bench) = Bench::new() else { return };
    let strict = ["-O2", "-Wstrict-aliasing=1", "-Wpedantic"];
    bench.program("fut/c/tests/programs/keys.c", Link::Shared, &strict);
}
