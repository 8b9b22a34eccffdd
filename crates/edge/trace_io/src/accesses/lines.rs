//! Formats with one row a line, which needs no other line.

use super::row::Pending;
use flashyard_memory::AccessKind;

/// A format of lines.
pub(super) trait AccessLines: Send {
    /// Reads a line that is not blank.
    ///
    /// Errors: what is wrong with it.
    fn parse(&mut self, line: &str, pending: &mut Pending) -> Result<(), String>;
}

/// A number in hex, without a prefix.
fn hex(text: &str) -> Result<u64, String> {
    // `from_str_radix` takes a sign as well.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!("{text:?} is no address in hex"));
    }
    u64::from_str_radix(text, 16).map_err(|_| format!("the address {text} is beyond 2^64"))
}

/// A number in hex after 0x, in decimal without.
pub(super) fn number(text: &str, what: &str) -> Result<u64, String> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => hex(digits),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| format!("{text:?} is no {what} below 2^64"))
        }
        None => Err(format!("{text:?} is no {what}")),
    }
}

/// A load or a store, in words of several programs.
pub(super) fn kind(text: &str) -> Result<AccessKind, String> {
    match text.to_ascii_lowercase().as_str() {
        "l" | "r" | "load" | "read" => Ok(AccessKind::Load),
        "s" | "w" | "store" | "write" => Ok(AccessKind::Store),
        _ => Err(format!("{text:?} is neither a load nor a store")),
    }
}

/// The fields of a line; an error where there are fewer than `least` or more than `N`.
fn fields<'a, const N: usize>(
    parts: impl Iterator<Item = &'a str>,
    least: usize,
) -> Result<[Option<&'a str>; N], String> {
    let mut fields = [None; N];
    let mut count = 0;
    for part in parts {
        let Some(place) = fields.get_mut(count) else { return Err(format!("there are more than {N} fields")) };
        *place = Some(part.trim());
        count += 1;
    }
    if count < least { Err(format!("there are {count} fields of {least}")) } else { Ok(fields) }
}

/// ` L 1ffeff7e0,8`: two blanks or a letter of the kind, the address in hex, bytes. Other lines of Valgrind begin with `==`.
/// \[X\] manual of Valgrind, Lackey
pub(super) struct Lackey;

impl AccessLines for Lackey {
    fn parse(&mut self, line: &str, pending: &mut Pending) -> Result<(), String> {
        if line.starts_with("==") || line.starts_with("--") {
            return Ok(());
        }
        let [word, rest] = fields::<2>(line.split_whitespace(), 2)?;
        let [address, bytes] = fields::<2>(rest.unwrap_or_default().split(','), 2)?;
        let address = hex(address.unwrap_or_default())?;
        let bytes = bytes.unwrap_or_default();
        let bytes = if bytes.starts_with("0x") { Err(format!("{bytes:?} is no size")) } else { number(bytes, "size") }?;
        match word.unwrap_or_default() {
            "I" => pending.instruction(),
            "L" => pending.access(AccessKind::Load, address, bytes)?,
            "S" => pending.access(AccessKind::Store, address, bytes)?,
            "M" => {
                pending.access(AccessKind::Load, address, bytes)?;
                pending.access(AccessKind::Store, address, bytes)?;
            }
            word => return Err(format!("{word:?} is none of I, L, S and M")),
        }
        Ok(())
    }
}

/// `r,4096,64,0,1000`: command, address, bytes, flags, tick, and packet and program counter where they were traced. Commands that are
/// neither r nor w are printed as numbers, and are other packets. \[X\] util/decode_packet_trace.py of gem5
pub(super) struct Gem5;

impl AccessLines for Gem5 {
    fn parse(&mut self, line: &str, pending: &mut Pending) -> Result<(), String> {
        let [command, address, bytes, flags, tick, packet, counter] = fields::<7>(line.split(','), 5)?;
        let address = number(address.unwrap_or_default(), "address")?;
        let bytes = number(bytes.unwrap_or_default(), "size")?;
        for (field, what) in [(flags, "flags"), (tick, "tick"), (packet, "packet"), (counter, "program counter")] {
            field.map_or(Ok(0), |field| number(field, what))?;
        }
        match command.unwrap_or_default() {
            "r" | "u" => pending.access(AccessKind::Load, address, bytes),
            "w" => pending.access(AccessKind::Store, address, bytes),
            other => number(other, "command").map(drop),
        }
    }
}

/// `s 0x1fffff50 1`: a store, its address, and instructions since the last access, itself among them. Sizes are not told: words of four
/// bytes. \[A\]
pub(super) struct Ucsd;

impl AccessLines for Ucsd {
    fn parse(&mut self, line: &str, pending: &mut Pending) -> Result<(), String> {
        let [word, address, count] = fields::<3>(line.split_whitespace(), 3)?;
        let address = address.and_then(|address| address.strip_prefix("0x")).ok_or("the address has no 0x")?;
        let address = hex(address)?;
        let count = number(count.unwrap_or_default(), "count of instructions")?;
        let kind = match word.unwrap_or_default() {
            "l" => AccessKind::Load,
            "s" => AccessKind::Store,
            word => return Err(format!("{word:?} is neither l nor s")),
        };
        pending.idle(count.saturating_sub(1));
        // An address whose word would straddle is taken as it is.
        pending.access(kind, address, 1)
    }
}

/// `3 89619008 4096`: instructions before, a line that is read, and the changed line that it drives out of the caches, if it does.
/// \[X\] README of Ramulator
pub(super) struct Ramulator;

impl AccessLines for Ramulator {
    fn parse(&mut self, line: &str, pending: &mut Pending) -> Result<(), String> {
        let [count, read, written] = fields::<3>(line.split_whitespace(), 2)?;
        let count = number(count.unwrap_or_default(), "count of instructions")?;
        let read = number(read.unwrap_or_default(), "address")?;
        let written = written.map(|written| number(written, "address")).transpose()?;
        pending.idle(count);
        pending.access(AccessKind::Load, read, 1)?;
        written.map_or(Ok(()), |written| pending.access(AccessKind::Store, written, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(parser: &mut dyn AccessLines, text: &str) -> Result<Vec<(AccessKind, u64, u32)>, String> {
        let mut pending = Pending::default();
        text.lines().try_for_each(|line| parser.parse(line, &mut pending))?;
        let found = std::iter::from_fn(|| pending.take());
        Ok(found.map(|access| (access.kind, access.address, access.gap)).collect())
    }

    #[test]
    fn rows_are_the_accesses_that_they_say() {
        use AccessKind::{Load, Store};
        let lackey = "==77== Lackey\nI  04001000,3\nI  04001003,2\n S 1ffeff7e0,8\nI  04001005,7\n M 0421c7c4,4\n";
        let expected = [(Store, 0x1_ffef_f7e0, 1), (Load, 0x421_c7c4, 0), (Store, 0x421_c7c4, 0)];
        assert_eq!(parsed(&mut Lackey, lackey).as_deref(), Ok(&expected[..]));
        let gem5 = "r,4096,64,0,1000\nw,130,4,0,2000,7\n14,4096,64,0,3000\n";
        assert_eq!(parsed(&mut Gem5, gem5).as_deref(), Ok(&[(Load, 4096, 0), (Store, 130, 0)][..]));
        let ucsd = "s 0x1fffff50 1\nl 0x1fffff58 6\n";
        assert_eq!(parsed(&mut Ucsd, ucsd).as_deref(), Ok(&[(Store, 0x1fff_ff50, 0), (Load, 0x1fff_ff58, 5)][..]));
        let ramulator = "2 11696256\n9 140736594543744 4096\n";
        let expected = [(Load, 11_696_256, 2), (Load, 140_736_594_543_744, 9), (Store, 4096, 0)];
        assert_eq!(parsed(&mut Ramulator, ramulator).as_deref(), Ok(&expected[..]));
    }

    #[test]
    fn rows_that_are_none_are_refused_with_their_fault() {
        let cases: [(&mut dyn AccessLines, &str, &str); 11] = [
            (&mut Lackey, " L 12g,8", "no address in hex"),
            (&mut Lackey, " X 12,8", "none of I, L, S and M"),
            (&mut Lackey, " L 12", "1 fields of 2"),
            (&mut Lackey, " L 12,0", "0 bytes"),
            (&mut Lackey, " L 12,0x8", "no size"),
            (&mut Gem5, "r,1,64,0", "4 fields of 5"),
            (&mut Gem5, "x,1,64,0,0", "no command"),
            (&mut Ucsd, "l 1fffff58 6", "no 0x"),
            (&mut Ucsd, "x 0x1f 6", "neither l nor s"),
            (&mut Ramulator, "2 4096 1 1", "more than 3"),
            (&mut Ramulator, "2 -4096", "no address"),
        ];
        for (parser, line, expected) in cases {
            let found = parsed(parser, line).expect_err(line);
            assert!(found.contains(expected), "{line}: {found}");
        }
        assert!(kind("Load").is_ok() && kind("i").is_err());
    }
}
