//! Writes CTF in either byte order, with known content.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn name(self) -> &'static str {
        if self == Order::Little { "le" } else { "be" }
    }
}

/// Bits of a packet, in the order of its trace.
#[derive(Debug)]
pub(super) struct Bits {
    pub(super) order: Order,
    pub(super) bytes: Vec<u8>,
    pub(super) pos: usize,
}

impl Bits {
    pub(super) fn new(order: Order) -> Bits {
        Bits { order, bytes: Vec::new(), pos: 0 }
    }

    pub(super) fn align(&mut self, to: usize) {
        self.pos = self.pos.next_multiple_of(to);
        self.bytes.resize(self.pos.div_ceil(8).max(self.bytes.len()), 0);
    }

    /// The low `size` bits of `value`, bit by bit.
    pub(super) fn put(&mut self, size: usize, align: usize, value: i64) {
        self.align(align);
        for i in 0..size {
            let bit = match self.order {
                Order::Little => value >> i & 1,
                Order::Big => value >> (size - 1 - i) & 1,
            };
            let at = self.pos + i;
            self.bytes.resize((at / 8 + 1).max(self.bytes.len()), 0);
            let shift = if self.order == Order::Little { at % 8 } else { 7 - at % 8 };
            self.bytes[at / 8] |= (bit as u8) << shift;
        }
        self.pos += size;
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.align(8);
        self.bytes.extend_from_slice(bytes);
        self.pos += bytes.len() * 8;
    }

    pub(super) fn text(&mut self, text: &str) {
        self.raw(text.as_bytes());
        self.raw(&[0]);
    }

    /// Characters, counted, padded with zeros.
    pub(super) fn chars(&mut self, text: &str, len: usize) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(len, 0);
        self.raw(&bytes);
    }

    /// Overwrites 8 bytes with a 64-bit number.
    pub(super) fn patch(&mut self, at: usize, value: u64) {
        let bytes = if self.order == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.bytes[at..at + 8].copy_from_slice(&bytes);
    }
}

pub(super) const UUID: [u8; 16] = *b"0123456789abcdef";

/// The content of a packet's header.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    pub(super) stream: i64,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) sequence: u64,
    pub(super) discarded: u64,
    pub(super) cpu: i64,
}

/// A packet of the layout that [`HEAD`] declares: events are written by `events`, then 16 bytes of padding.
pub(super) fn packet(order: Order, head: Head, events: impl FnOnce(&mut Bits)) -> Vec<u8> {
    let mut bits = Bits::new(order);
    bits.put(32, 8, 0xc1fc_1fc1);
    bits.raw(&UUID);
    bits.put(32, 8, head.stream);
    for value in [head.begin, head.end, 0, 0, head.sequence, head.discarded] {
        bits.put(64, 8, value as i64);
    }
    bits.put(32, 8, head.cpu);
    events(&mut bits);
    let content = bits.pos as u64;
    bits.align(8);
    bits.raw(&[0xaa; 16]);
    let size = bits.pos as u64;
    bits.patch(40, content);
    bits.patch(48, size);
    bits.bytes
}

/// A time of 27 bits with an id of 5, or both in full after id 31: LTTng's compact header.
pub(super) fn compact_header(bits: &mut Bits, id: i64, time: u64, last: u64) {
    bits.align(8);
    if id < 31 && time - last < 1 << 27 {
        bits.put(5, 1, id);
        bits.put(27, 1, time as i64);
    } else {
        bits.put(5, 1, 31);
        bits.put(32, 8, id);
        bits.put(64, 8, time as i64);
    }
}

/// Types, trace, clock and packets; streams and events follow.
pub(super) fn head(order: Order, domain: &str) -> String {
    let uuid = "30313233-3435-3637-3839-616263646566";
    HEAD.replace("ORDER", order.name()).replace("UUID", uuid).replace("DOMAIN", domain)
}

const HEAD: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
trace {
    major = 1; minor = 8; uuid = "UUID"; byte_order = ORDER;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; };
};
env { domain = "DOMAIN"; tracer_name = "made"; hostname = "here \"quoted\""; };
clock { name = "monotonic"; description = "Monotonic Clock"; freq = 1000000000; offset_s = 1700000000; offset = 5; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_t;
typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := uint32_clock_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_t;
struct packet_context {
    uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end;
    uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded;
    uint32_t cpu_id;
};
struct event_header_compact {
    enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
    variant <id> {
        struct { uint27_clock_t timestamp; } compact;
        struct { uint32_t id; uint64_clock_t timestamp; } extended;
    } v;
} align(8);
"#;
