//! trace.dat, some 5 KiB: two CPUs, an instance, pages of 512 bytes.

use super::{EVENT, Tiny};
use crate::generator::{Buffer, Content, Record, Shape, trace_dat};

pub(super) fn all() -> Vec<Tiny> {
    let variants = [
        ("trace_dat-v6", 6, "none", false),
        ("trace_dat-v7", 7, "none", false),
        ("trace_dat-v7-zstd", 7, "zstd", false),
        ("trace_dat-v7-zlib", 7, "zlib", false),
        ("trace_dat-v6-big", 6, "none", true),
        ("trace_dat-v7-big", 7, "none", true),
        ("trace_dat-v7-big-zstd", 7, "zstd", true),
        ("trace_dat-v7-big-zlib", 7, "zlib", true),
    ];
    let tiny = |(name, version, compression, big_endian)| {
        let long = if big_endian { 4 } else { 8 };
        let bytes = made(Shape { version, compression, big_endian, page_size: 512, long });
        Tiny { name, bytes, events: 78 }
    };
    variants.map(tiny).into()
}

fn made(shape: Shape) -> Vec<u8> {
    let record = |time: u64| {
        let mut bytes = [shape.u16(9), [0, 0]].concat();
        [7, 5 << 16 | 16, 1].iter().for_each(|word| bytes.extend(shape.u32(*word)));
        bytes.extend(b"text\0");
        Record { time, payload: bytes, lost_before: (time == 5000).then_some(3) }
    };
    let cpu = |events: u64| (1..=events).map(|at| record(at * 1000)).collect::<Vec<_>>();
    let buffer =
        |name: &str| Buffer { name: name.to_owned(), clock: "mono".to_owned(), cpus: vec![cpu(30), cpu(9)] };
    let shift = [shape.u64(5).to_vec(), shape.u32(1).to_vec(), shape.u32(0).to_vec()].concat();
    let content = Content {
        formats: vec![("x".to_owned(), EVENT.to_owned())],
        buffers: vec![buffer(""), buffer("aside")],
        kallsyms: "1000 T f\n".to_owned(),
        printk_formats: "0x1 : \"p\"\n".to_owned(),
        cmdlines: "7 seven\n".to_owned(),
        options: vec![(7, b"12\0".to_vec()), (12, shift), (11, shape.u64(77).to_vec()), (999, vec![1, 2, 3])],
    };
    trace_dat(shape, &content)
}
