//! Child processes.

use std::{
    io::{ErrorKind, Read, Write},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    time::{Duration, Instant},
};

use fut::process::Command;

use super::{beside_another, kind::builder};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn the_end_of_a_child_is_waited_for_and_no_lwp_waits() {
    let (stdin, mut end) = std::io::pipe().unwrap();
    let status = beside_another(
        move || end.write_all(b"\n").unwrap(),
        move || shell("read line; exit 7").stdin(stdin).status().unwrap(),
    );
    assert_eq!(status.code(), Some(7));
}

#[test]
fn everything_that_a_child_writes_is_read_whichever_pipe_is_full_first() {
    builder().lwps(2).build().unwrap().run(|| {
        let script = "head -c 300000 /dev/zero >&2; head -c 300001 /dev/zero; exit 3";
        let output = shell(script).output().unwrap();
        let lengths = (output.stdout.len(), output.stderr.len());
        assert_eq!((output.status.code(), lengths), (Some(3), (300_001, 300_000)));
    });
}

#[test]
fn a_child_answers_by_its_pipes_and_sees_the_end_of_its_input() {
    builder().lwps(1).build().unwrap().run(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        // More than a pipe holds, so both sides wait for each other.
        let bytes: Vec<u8> = (0..500_000_u32).map(|at| (at / 7) as u8).collect();
        let sent = bytes.clone();
        let writer = fut::spawn(move || stdin.write_all(&sent));
        let mut echoed = Vec::new();
        stdout.read_to_end(&mut echoed).unwrap();
        writer.join().unwrap().unwrap();
        assert!(echoed == bytes, "{} bytes", echoed.len());
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_child_that_takes_too_long_is_killed() {
    builder().lwps(1).build().unwrap().run(|| {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let late = child.wait_until(Instant::now() + Duration::from_millis(20)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        // It was waited for: the status stays.
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    });
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    builder().lwps(1).build().unwrap().run(|| {
        assert_eq!(Command::new("/no/such/program").spawn().unwrap_err().kind(), ErrorKind::NotFound);
    });
}

/// As in the standard library: streams that were set stay so, also if the standard library's command set them.
#[test]
fn output_leaves_streams_that_were_set_alone() {
    builder().lwps(1).build().unwrap().run(|| {
        let file = || {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"of a file").unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            file
        };
        assert_eq!(Command::new("cat").stdin(file()).output().unwrap().stdout, b"of a file");
        let mut command = Command::new("cat");
        command.as_std_mut().stdin(file());
        assert_eq!(command.output().unwrap().stdout, b"of a file");
        let mut theirs = std::process::Command::new("cat");
        theirs.stdin(file());
        assert_eq!(Command::from(theirs).output().unwrap().stdout, b"of a file");
        let output = Command::new("echo").arg("to nobody").stdout(Stdio::null()).output().unwrap();
        assert_eq!(output.stdout, b"");
        assert_eq!(Command::new("cat").output().unwrap().stdout, b"");
    });
}
