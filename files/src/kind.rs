//! Names of file types, for messages.

use rustix::fs::FileType;

/// `a FIFO`, `a folder`, …
pub(crate) fn kind_name(file_type: FileType) -> &'static str {
    match file_type {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        _ => "a file of unknown type",
    }
}
