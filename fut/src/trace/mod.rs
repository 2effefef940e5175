//! The format of user traces, and its reader. The merge decides which thread ran where; that is not done here.
//!
//! A file is a header and packets; a packet is a header and records; everything is little-endian.
//!
//! ```text
//! file     0         8         12         16
//!          | FUTTRACE| version | reserved | packet | packet | …
//!
//! packet   0      4      6       8        12      16    20    24    32           40       48     56          64
//!          | FUTP | kind | flags | length | crc32 | pid | lwp | seq | first tick | thread | lost | last tick | payload …
//!
//! record   0      8      12      13      14    16
//!          | tick | code | words | flags | cpu | word | word | …
//! ```
//!
//! * A packet can be read alone. Its header contains the LWP and process that wrote it, its sequence number among that
//!   LWP's packets, the user thread that was mounted when it was begun, and the number of records that the LWP had lost
//!   until then. `length` counts the payload. `crc32` covers the header (with that field 0) and the payload.
//! * A record is 16 bytes, and 8 for each parameter word. A text is a word with its length in bytes, then its bytes,
//!   padded with zeros to whole words. `cpu` is 0xffff if the probe could not read it.
//! * The packets of one LWP are in order. The packets of different LWPs are interleaved as they were drained.
//! * A flight recorder overwrites its oldest packets. Then the trace begins with a packet later than 0, and the end of
//!   the LWP (`LWP_END`) contains the number of overwritten packets and bytes of records. These are not counted in
//!   `lost`.
//! * Records of threads without a buffer are lost. Their number is in an `LWP_END` of LWP 0.
//! * Packets of other kinds contain metadata: declarations of events, the process, clock snapshots, the addresses of
//!   its code, the costs of recording. Each kind may occur more than once.
//! * A trace may be cut into parts, of which the oldest may be removed. A packet that was being filled when a part
//!   ended is in two parts: its rest has the same sequence number, and a flag. The facts from removed parts about
//!   threads that still live are in separate files, described in `carried/mod.rs`.
//! * The bits of a code are described in `code.rs`.

mod carried;
mod code;
mod costs;
mod declaration;
mod module;
mod packet;
mod parts;
mod reader;
mod record;
mod user_stream;
mod user_trace_file;
mod wire;

#[cfg(all(feature = "runtime", feature = "drain"))]
pub(crate) use carried::encode_owners;
pub use carried::{
    Carried, CarriedFile, CarriedLwps, CarriedOwner, CarriedSpan, CarriedState, CarriedSummary, Changes,
    Digest, carry_over,
};
pub use code::{DECLARED_BIT, MAX_C_CODE, code_with_text, shown_code, split_code};
pub use costs::{ProbeCosts, decode_costs, encode_costs};
pub use declaration::{Declaration, decode_declarations, encode_declarations};
pub use module::{Module, NamedPlace, decode_modules, decode_places, encode_modules, encode_places};
pub use packet::{
    FILE_HEAD_LEN, FILE_MAGIC, PACKET_HEAD_LEN, PACKET_MAGIC, PacketFlags, PacketHead, PacketKind, VERSION,
    file_head,
};
#[cfg(feature = "shm")]
pub(crate) use reader::encode_clocks;
pub use reader::{LwpPackets, Packet, ProcessInfo, UserTrace};
pub use record::{CPU_UNKNOWN, MAX_RECORD_WORDS, RECORD_HEAD_LEN, Record, RecordHead, Records};
pub use user_stream::UserStream;
#[cfg(feature = "probes")]
pub(crate) use wire::encode_text;
pub use wire::{Cut, TraceError};
