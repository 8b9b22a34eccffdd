//! Options: the agreement of client and server before the first request.

use crate::format::{FIXED_NEWSTYLE, NBD_MAGIC, NO_ZEROES, OPTION_MAGIC, OPTION_REPLY_MAGIC};
use crate::format::{Reader, info, option, reply, transmission};
use crate::terms::{Closed, Export, PAYLOAD_MAX};

/// Longest name of an export. Source: proto.md, "Values": strings have at most 4096 bytes.
const NAME_MAX: usize = 4096;
/// Longest option that is read at all: a name and a list of wished information.
pub(crate) const OPTION_MAX: usize = NAME_MAX + 1024;

/// Outcome of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// More options follow.
    Nothing,
    /// Requests follow, for the export of this index.
    Export(usize),
    /// The client leaves, or asked for what ends a session.
    End(Closed),
}

/// The server's first words.
pub(crate) fn greet(out: &mut Vec<u8>) {
    out.extend(NBD_MAGIC.to_be_bytes());
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
}

/// Answers one option. `zeroes`: the client wants the 124 bytes of padding after an export's size.
pub(crate) fn answer(number: u32, data: &[u8], zeroes: bool, exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    match number {
        option::EXPORT_NAME => by_name(data, zeroes, exports, out),
        option::ABORT => {
            option_reply(number, reply::ACK, &[], out);
            Agreed::End(Closed::ByClient)
        }
        option::LIST if data.is_empty() => {
            for export in exports {
                let name = export.name.as_bytes();
                option_reply(number, reply::SERVER, &[&(name.len() as u32).to_be_bytes(), name], out);
            }
            option_reply(number, reply::ACK, &[], out);
            Agreed::Nothing
        }
        option::LIST => refuse(number, reply::INVALID, "a list takes no data", out),
        option::INFO | option::GO => about(number, data, exports, out),
        _ => refuse(number, reply::UNSUPPORTED, "not supported", out),
    }
}

/// The oldest way: no reply but the export itself, and none at all when there is no such export.
fn by_name(data: &[u8], zeroes: bool, exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    let Some(index) = find(data, exports).filter(|&index| !exports[index].is_away) else {
        return Agreed::End(Closed::UnknownExport);
    };
    out.extend(exports[index].size_bytes.to_be_bytes());
    out.extend(FLAGS.to_be_bytes());
    if zeroes {
        out.extend([0; 124]);
    }
    Agreed::Export(index)
}

fn about(number: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    let mut reader = Reader(data);
    let Some((name, wishes)) = name_and_wishes(&mut reader) else {
        return refuse(number, reply::INVALID, "a name and a list of wishes belong here", out);
    };
    let Some(index) = find(name, exports) else {
        return refuse(number, reply::UNKNOWN, "no export of that name", out);
    };
    let export = &exports[index];
    if export.is_away {
        return refuse(number, reply::UNKNOWN, "the drive of that export is away", out);
    }
    let kind = info::EXPORT.to_be_bytes();
    option_reply(number, reply::INFO, &[&kind, &export.size_bytes.to_be_bytes(), &FLAGS.to_be_bytes()], out);
    let least = export.block_bytes.to_be_bytes();
    let sizes = [&info::BLOCK_SIZE.to_be_bytes()[..], &least, &least, &PAYLOAD_MAX.to_be_bytes()];
    option_reply(number, reply::INFO, &sizes, out);
    if wishes.chunks_exact(2).any(|wish| wish == info::NAME.to_be_bytes()) {
        option_reply(number, reply::INFO, &[&info::NAME.to_be_bytes(), export.name.as_bytes()], out);
    }
    option_reply(number, reply::ACK, &[], out);
    if number == option::GO { Agreed::Export(index) } else { Agreed::Nothing }
}

fn name_and_wishes<'a>(reader: &mut Reader<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let length = reader.u32()? as usize;
    let name = reader.take(length).filter(|name| name.len() <= NAME_MAX)?;
    let count = reader.u16()? as usize;
    let wishes = reader.take(2 * count)?;
    reader.0.is_empty().then_some((name, wishes))
}

/// The export of that name; the empty name is the first one.
fn find(name: &[u8], exports: &[Export]) -> Option<usize> {
    exports.iter().position(|export| name.is_empty() || export.name.as_bytes() == name)
}

/// One flush covers what all connections have written: clients may use several.
const FLAGS: u16 = {
    use transmission::*;
    HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | CAN_MULTI_CONN | SEND_CACHE
};

/// Says why not, in words that clients print.
pub(crate) fn refuse(number: u32, why: u32, words: &str, out: &mut Vec<u8>) -> Agreed {
    option_reply(number, why, &[words.as_bytes()], out);
    Agreed::Nothing
}

fn option_reply(number: u32, kind: u32, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(number.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend((length as u32).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}
