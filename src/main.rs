//! The `sigmund` command.
fn main() {}
