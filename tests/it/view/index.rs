//! The index in its cache.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{Server, TRACE};
use crate::{sigmund::Sigmund, views::listing};

#[test]
fn the_index_is_kept_and_made_again_when_it_is_of_another_trace_or_damaged() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let total = |server: &Server| server.json("selection?keys=thread:5")["states"].clone();
    let kept = || {
        let entry = fs::read_dir(sigmund.path("cache")).unwrap().next().unwrap().unwrap();
        (entry.path(), entry.metadata().unwrap().modified().unwrap())
    };
    let first = total(&Server::start(&sigmund, TRACE, &[]));
    let (path, made) = kept();
    assert_eq!(total(&Server::start(&sigmund, TRACE, &[])), first);
    assert_eq!(kept().1, made, "it is not made again");
    let bytes = fs::read(&path).unwrap();
    let damages: [Vec<u8>; 4] = [
        Vec::new(),
        bytes[..bytes.len() / 2].to_vec(),
        bytes[8..].to_vec(),
        [&bytes[..24], &[0xff; 64], &bytes[88..]].concat(),
    ];
    for damaged in damages {
        fs::write(&path, &damaged).unwrap();
        assert_eq!(total(&Server::start(&sigmund, TRACE, &[])), first);
    }
    // An index that another user could have written is not read.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
    assert_eq!(total(&Server::start(&sigmund, TRACE, &[])), first);
    assert_eq!(kept().0, path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "it is made again");
    // Another trace under the same name.
    let (_, rest) =
        listing().split_once('\n').map(|(head, rest)| (head.to_string(), rest.to_string())).unwrap();
    let shorter: Vec<&str> = rest.lines().take(12).collect();
    fs::remove_dir_all(sigmund.path(TRACE)).unwrap();
    sigmund.merge_listing("t", &format!("# tick_hz=1000000000\n{}\n", shorter.join("\n")));
    assert_ne!(total(&Server::start(&sigmund, TRACE, &[])), first);
}
