//! Who may ask, and what a question may do.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Reply, Server, TRACE};
use crate::{sigmund::Sigmund, views::listing};

#[test]
fn only_the_page_with_the_token_is_answered() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let (own, bearer) = (server.address.as_str(), server.bearer());
    let status = |headers: &[(&str, &str)]| server.request("GET", "/api/trace", headers, "").status;
    assert_eq!(status(&[("Host", own), ("Authorization", &bearer)]), 200);
    let wrong: &[&[(&str, &str)]] = &[
        &[("Host", own)],
        &[("Host", own), ("Authorization", "Bearer 0123456789abcdef")],
        &[("Host", "evil.example"), ("Authorization", &bearer)],
        &[("Host", "localhost:1"), ("Authorization", &bearer)],
        &[("Authorization", &bearer)],
        &[("Host", own), ("Authorization", &bearer), ("Origin", "http://evil.example")],
        &[("Host", own), ("Authorization", &bearer), ("Sec-Fetch-Site", "cross-site")],
    ];
    for headers in wrong {
        assert_eq!(status(headers), 403, "{headers:?}");
    }
    // The page itself has nothing secret; but it is not for other names.
    let page = server.request("GET", "/", &[("Host", own)], "");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert_eq!(server.request("GET", "/", &[("Host", "evil.example")], "").status, 403);
    assert_eq!(server.request("GET", "/../Cargo.toml", &[("Host", own)], "").status, 404);
    assert_eq!(server.request("PUT", "/", &[("Host", own)], "").status, 405);
    assert_eq!(server.get("nothing").status, 404);
    assert_eq!(server.get("at?key=thread:99999&tick=0").status, 404);
    for question in [
        "at?key=fiber:1",
        "rows?kind=x",
        "selection?from=9&to=3",
        "selection?from=nan",
        "selection?keys=cpu:0",
    ] {
        assert_eq!(server.get(question).status, 400, "{question}");
    }
    // A body that is too long is refused before it is read.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("POST /api/sql HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\nAuthorization: {bearer}\r\n");
    stream.write_all(format!("{head}Content-Length: 2000000\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(Reply::read(stream).status, 413);
}

#[test]
fn sql_of_the_page_reads_only_and_ends_with_its_client() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &["--queries", "1", "--time", "20s"]);
    assert_eq!(server.post("sql", &json!({ "query": "DROP TABLE events" })).status, 403);
    for wrong in [
        "SELECT nothing",
        "SELECT 1/0",
        "SELECT dur_tick / 0 FROM active",
        "SELECT * FROM active WHERE 1 / (thread - thread) = 1",
        "SELECT CAST('a' AS INT)",
    ] {
        assert_eq!(server.post("sql", &json!({ "query": wrong })).status, 400, "{wrong}");
    }
    let answer = server.post("sql", &json!({ "query": "SELECT count(*) AS n FROM events" })).json();
    let events = sigmund.number(TRACE, "SELECT count(*) FROM events");
    assert_eq!((&answer["rows"], &answer["columns"][0]["name"]), (&json!([[events]]), &json!("n")));
    // A query without an end, whose client goes: the only place is free again.
    let endless = json!({ "query": "SELECT count(*) FROM events a, events b, events c, events d, events e, events f, events g" });
    let head = format!(
        "POST /api/sql HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n{endless}",
        server.address,
        server.bearer(),
        endless.to_string().len()
    );
    let mut client = TcpStream::connect(&server.address).unwrap();
    client.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(client);
    let begun = Instant::now();
    assert_eq!(server.get("rows?kind=cpu").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn connections_that_send_nothing_leave_room_for_others() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    assert_eq!(server.get("trace").status, 200);
    drop(idle);
}

#[test]
fn a_client_that_reads_no_answers_is_disconnected() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let mut client = TcpStream::connect(&server.address).unwrap();
    client.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    // More answers than the buffers of both sockets hold. The server has not read all requests when it closes the
    // connection, so the client gets a reset.
    let request = format!("GET /braid.js HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let _ = client.write_all(request.repeat(10_000).as_bytes());
    let begun = Instant::now();
    while client.take_error().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(40), "it is still connected");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(server.get("trace").status, 200);
}

#[test]
fn a_unix_socket_is_the_users_own_and_takes_no_place() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut server = Server::start(&sigmund, TRACE, &["--listen", "unix:view.sock"]);
    let path = sigmund.path("view.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    let head = "GET /api/trace HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\n";
    stream.write_all(format!("{head}Authorization: {}\r\n\r\n", server.bearer()).as_bytes()).unwrap();
    assert_eq!(Reply::read(stream).status, 200);
    // A signal ends it, and the socket is gone; what had the name before is not replaced.
    let pid = server.child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(server.child.wait().unwrap().success());
    assert!(!path.exists());
    fs::write(&path, "mine").unwrap();
    sigmund
        .run(["view", TRACE, "--no-open", "--cache", "cache", "--listen", "unix:view.sock"])
        .complained(&["view.sock"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert!(
        fs::read_dir(sigmund.folder())
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".sigmund-view") })
    );
}
