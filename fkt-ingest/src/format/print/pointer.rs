//! `%p` and its extensions (Documentation/core-api/printk-formats.rst, v6.12).

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::value::Value;
use crate::cut::ByteOrder;
use crate::format::machine::Machine;
use crate::format::names::Names;

/// The number of letters after a `%p` that belong to it.
pub(super) fn extension_len(letters: &str) -> usize {
    const EXTENSIONS: [&str; 44] = [
        "ISpfc", "ISpfs", "ISpsc", "ISfc", "ISpc", "ISpf", "ISps", "ISc", "ISp", "ISf", "ISs", "IS", "iS",
        "I6c", "i6c", "I4h", "I4n", "I4b", "I4l", "I4", "i4", "I6", "i6", "Ub", "UB", "Ul", "UL", "U", "MFR",
        "MF", "MR", "M", "mR", "m", "hC", "hD", "hN", "h", "bl", "b", "S", "s", "F", "f",
    ];
    const OTHERS: [&str; 7] = ["SR", "B", "K", "x", "e", "V", "d"];
    let longest =
        OTHERS.iter().chain(&EXTENSIONS).filter(|e| letters.starts_with(**e)).map(|e| e.len()).max();
    longest.unwrap_or(0)
}

/// Writes a value by a `%p` with this extension; `len` is the width, which some extensions use as a number of bytes.
pub(super) fn write(
    extension: &str,
    value: &Value<'_>,
    len: Option<usize>,
    machine: Machine,
    names: &Names,
    out: &mut String,
) {
    match value {
        Value::Number(address, _) => write_address(extension, *address as u64, names, out),
        Value::Bytes { bytes, .. } => {
            if extension == "bl" || extension == "b" {
                let len = len.map_or(bytes.len(), |bits| bits.div_ceil(8)).min(bytes.len());
                let bits = Value::Bits(&bytes[..len]);
                return write(extension, &bits, None, machine, names, out);
            }
            if write_bytes(extension, bytes, len, out).is_none() {
                out.push_str("(?)");
            }
        }
        Value::Bits(bits) if extension == "bl" => out.push_str(&bit_list(bits, machine)),
        Value::Bits(bits) => out.push_str(&bit_mask(bits, machine)),
        Value::Text(text) => out.push_str(text),
    }
}

fn write_address(extension: &str, address: u64, names: &Names, out: &mut String) {
    let symbol = match extension {
        "S" | "s" | "F" | "f" | "SR" | "B" => names.symbol(address),
        _ => None,
    };
    // Writing to a String cannot fail.
    let _ = match (symbol, extension) {
        (Some((name, _)), "s" | "f") => write!(out, "{name}"),
        (Some((name, offset)), _) => write!(out, "{name}+{offset:#x}"),
        (None, "" | "x" | "K") if address == 0 => write!(out, "(nil)"),
        (None, _) => write!(out, "{address:#x}"),
    };
}

fn write_bytes(extension: &str, bytes: &[u8], len: Option<usize>, out: &mut String) -> Option<()> {
    match extension {
        "M" | "MR" | "MF" | "m" | "mR" | "MFR" => {
            let mut mac = *bytes.first_chunk::<6>()?;
            if extension.ends_with('R') {
                mac.reverse();
            }
            let between = match extension {
                "m" | "mR" => "",
                "MF" | "MFR" => "-",
                _ => ":",
            };
            out.push_str(&joined(&mac, between));
        }
        "I4" | "I4h" | "I4n" | "I4b" | "I4l" => {
            let address = *bytes.first_chunk::<4>()?;
            let _ = write!(out, "{}", Ipv4Addr::from(address));
        }
        "i4" => {
            let [a, b, c, d] = *bytes.first_chunk::<4>()?;
            let _ = write!(out, "{a:03}.{b:03}.{c:03}.{d:03}");
        }
        "I6c" | "i6c" => {
            let _ = write!(out, "{}", Ipv6Addr::from(*bytes.first_chunk::<16>()?));
        }
        "I6" => out.push_str(&groups(bytes.first_chunk()?, ":")),
        "i6" => out.push_str(&groups(bytes.first_chunk()?, "")),
        _ if extension.starts_with("IS") || extension.starts_with("iS") => {
            socket_address(&extension[2..], bytes, out)?;
        }
        "U" | "Ub" | "UB" | "Ul" | "UL" => uuid(extension, *bytes.first_chunk()?, out),
        "h" | "hC" | "hD" | "hN" => {
            let between = match extension {
                "h" => " ",
                "hC" => ":",
                "hD" => "-",
                _ => "",
            };
            let len = len.unwrap_or(1).min(bytes.len());
            out.push_str(&joined(bytes.get(..len)?, between));
        }
        _ => return None,
    }
    Some(())
}

fn joined(bytes: &[u8], between: &str) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(between)
}

fn groups(bytes: &[u8; 16], between: &str) -> String {
    let groups: Vec<String> = bytes.chunks(2).map(|group| joined(group, "")).collect();
    groups.join(between)
}

/// `struct sockaddr_in`, `struct sockaddr_in6`: family in the machine's order (2 or 10 in either byte), then the
/// port in the network's.
fn socket_address(options: &str, bytes: &[u8], out: &mut String) -> Option<()> {
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let with_port = options.contains('p');
    let address = match (bytes.first()?, bytes.get(1)?) {
        (2, 0) | (0, 2) => Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?).to_string(),
        (10, 0) | (0, 10) => {
            let address = bytes.get(8..)?.first_chunk::<16>()?;
            let text = if options.contains('c') {
                Ipv6Addr::from(*address).to_string()
            } else {
                groups(address, ":")
            };
            if with_port { format!("[{text}]") } else { text }
        }
        // For other families, and none, trace-cmd shows nothing.
        _ => return Some(()),
    };
    out.push_str(&address);
    if with_port {
        let _ = write!(out, ":{port}");
    }
    Some(())
}

fn uuid(extension: &str, mut bytes: [u8; 16], out: &mut String) {
    if extension.ends_with(['l', 'L']) {
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
    }
    let parts: Vec<String> = [0..4, 4..6, 6..8, 8..10, 10..16].map(|range| joined(&bytes[range], "")).into();
    let text = parts.join("-");
    let upper = extension.ends_with(['B', 'L']);
    out.push_str(&if upper { text.to_uppercase() } else { text });
}

/// Bits as hexadecimal digits, the highest first, with a comma after every 32 bits: `00000000,0000000f`.
pub(crate) fn bit_mask(bits: &[u8], machine: Machine) -> String {
    let bytes = low_byte_first(bits, machine);
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate().rev() {
        let _ = write!(text, "{byte:02x}");
        if at > 0 && at % 4 == 0 {
            text.push(',');
        }
    }
    text
}

/// Bits as ranges: `0-3,8`.
pub(crate) fn bit_list(bits: &[u8], machine: Machine) -> String {
    let bytes = low_byte_first(bits, machine);
    let is_set = |bit: usize| bytes.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0);
    let mut ranges: Vec<String> = Vec::new();
    let mut bit = 0;
    while bit < bytes.len() * 8 {
        if !is_set(bit) {
            bit += 1;
            continue;
        }
        let first = bit;
        while is_set(bit + 1) {
            bit += 1;
        }
        ranges.push(if first == bit { first.to_string() } else { format!("{first}-{bit}") });
        bit += 1;
    }
    ranges.join(",")
}

/// A mask is an array of `unsigned long`s.
fn low_byte_first(bits: &[u8], machine: Machine) -> Vec<u8> {
    if machine.order == ByteOrder::Little {
        return bits.to_vec();
    }
    bits.chunks(usize::from(machine.long_size)).flat_map(|long| long.iter().rev().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(extension: &str, bytes: &[u8]) -> String {
        let mut out = String::new();
        let element = crate::format::print::types::CType { size: 1, signed: false, pointer: false };
        let value = Value::Bytes { bytes, element };
        write(extension, &value, Some(3), Machine::little_64(true), &Names::default(), &mut out);
        out
    }

    #[test]
    fn addresses_of_networks_and_uuids_read_as_people_write_them() {
        let bytes: Vec<u8> = (1..=16).collect();
        assert_eq!(shown("M", &bytes), "01:02:03:04:05:06");
        assert_eq!(shown("I4", &bytes), "1.2.3.4");
        assert_eq!(shown("I6c", &[0; 16]), "::");
        assert_eq!(shown("U", &bytes), "01020304-0506-0708-090a-0b0c0d0e0f10");
        assert_eq!(shown("UL", &bytes), "04030201-0605-0807-090A-0B0C0D0E0F10");
        assert_eq!(shown("hC", &bytes), "01:02:03");
        assert_eq!(shown("ISpc", &[2, 0, 0, 80, 127, 0, 0, 1]), "127.0.0.1:80");
        assert_eq!(shown("M", &[1]), "(?)");
    }

    #[test]
    fn masks_are_shown_in_either_order_alike() {
        let little = Machine::little_64(true);
        let big = Machine { order: ByteOrder::Big, ..little };
        assert_eq!(bit_mask(&[0x0f, 1, 0, 0, 0, 0, 0, 0x80], little), "80000000,0000010f");
        assert_eq!(bit_mask(&[0x80, 0, 0, 0, 0, 0, 1, 0x0f], big), "80000000,0000010f");
        let big_32 = Machine { long_size: 4, ..big };
        assert_eq!(bit_mask(&[0, 0, 1, 0x0f, 0x80, 0, 0, 0], big_32), "80000000,0000010f");
        assert_eq!(bit_list(&[0x0f, 1, 0, 0, 0, 0, 0, 0x80], little), "0-3,8,63");
    }

    #[test]
    fn letters_that_are_no_extension_stay_text() {
        assert_eq!((extension_len("Sfoo"), extension_len("I6cx"), extension_len("")), (1, 3, 0));
        assert_eq!(extension_len("0x"), 0);
    }
}
