//! Options: the agreement of client and server before the first request.

use crate::format::{ALLOCATION_ID, FIXED_NEWSTYLE, NBD_MAGIC, NO_ZEROES, OPTION_MAGIC, OPTION_REPLY_MAGIC};
use crate::format::{Reader, info, option, reply, transmission};
use crate::replies::Replies;
use crate::terms::{Closed, Export, PAYLOAD_MAX};

/// Longest name of an export. Source: proto.md, "Values": strings have at most 4096 bytes.
const NAME_MAX: usize = 4096;
/// Longest option that is read at all: a name and a list of wished information.
pub(crate) const OPTION_MAX: usize = NAME_MAX + 1024;

/// Clients should ask for whole units of this size where they can, however small the blocks are: drives map such units.
const PREFERRED_BYTES: u32 = 4096;

/// The metadata context that there is.
const ALLOCATION: &[u8] = b"base:allocation";

/// Wishes of a client that hold once requests follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// It wants no 124 bytes of padding after an export's size.
    pub(crate) no_zeroes: bool,
    /// Form of its replies.
    pub(crate) replies: Replies,
    /// The export for which it has selected `base:allocation`.
    pub(crate) context: Option<usize>,
}

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

/// Answers one option.
pub(crate) fn answer(number: u32, data: &[u8], terms: &mut Terms, exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    match number {
        option::EXPORT_NAME => by_name(data, terms, exports, out),
        option::ABORT => {
            option_reply(number, reply::ACK, &[], out);
            Agreed::End(Closed::ByClient)
        }
        option::LIST if data.is_empty() => {
            for export in exports.iter().filter(|export| !export.is_gone) {
                let name = export.name.as_bytes();
                option_reply(number, reply::SERVER, &[&(name.len() as u32).to_be_bytes(), name], out);
            }
            option_reply(number, reply::ACK, &[], out);
            Agreed::Nothing
        }
        option::LIST => refuse(number, reply::INVALID, "a list takes no data", out),
        option::INFO | option::GO => about(number, data, terms, exports, out),
        option::STRUCTURED_REPLY if data.is_empty() => {
            terms.replies = Replies::Structured;
            option_reply(number, reply::ACK, &[], out);
            Agreed::Nothing
        }
        option::STRUCTURED_REPLY => refuse(number, reply::INVALID, "structured replies take no data", out),
        option::LIST_META_CONTEXT | option::SET_META_CONTEXT => contexts(number, data, terms, exports, out),
        _ => refuse(number, reply::UNSUPPORTED, "not supported", out),
    }
}

/// The oldest way: no reply but the export itself, and none at all when there is no such export.
fn by_name(data: &[u8], terms: &Terms, exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    let Some(index) = find(data, exports).filter(|&index| !exports[index].is_away) else {
        return Agreed::End(Closed::UnknownExport);
    };
    out.extend(exports[index].size_bytes.to_be_bytes());
    out.extend(flags(terms, &exports[index]).to_be_bytes());
    if !terms.no_zeroes {
        out.extend([0; 124]);
    }
    Agreed::Export(index)
}

fn about(number: u32, data: &[u8], terms: &Terms, exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    let mut reader = Reader(data);
    let Some((name, wishes)) = name_and_wishes(&mut reader) else {
        return refuse(number, reply::INVALID, "a name and a list of wishes belong here", out);
    };
    let index = match find_served(name, exports) {
        Ok(index) => index,
        Err(words) => return refuse(number, reply::UNKNOWN, words, out),
    };
    let export = &exports[index];
    let kind = info::EXPORT.to_be_bytes();
    option_reply(
        number,
        reply::INFO,
        &[&kind, &export.size_bytes.to_be_bytes(), &flags(terms, export).to_be_bytes()],
        out,
    );
    let least = export.block_bytes.to_be_bytes();
    let preferred = export.block_bytes.max(PREFERRED_BYTES).to_be_bytes();
    let sizes = [&info::BLOCK_SIZE.to_be_bytes()[..], &least, &preferred, &PAYLOAD_MAX.to_be_bytes()];
    option_reply(number, reply::INFO, &sizes, out);
    if wishes.chunks_exact(2).any(|wish| wish == info::NAME.to_be_bytes()) {
        option_reply(number, reply::INFO, &[&info::NAME.to_be_bytes(), export.name.as_bytes()], out);
    }
    option_reply(number, reply::ACK, &[], out);
    if number == option::GO { Agreed::Export(index) } else { Agreed::Nothing }
}

/// Lists the metadata contexts that a client asks for, or selects them.
fn contexts(number: u32, data: &[u8], terms: &mut Terms, exports: &[Export], out: &mut Vec<u8>) -> Agreed {
    let selects = number == option::SET_META_CONTEXT;
    if selects {
        terms.context = None;
    }
    if terms.replies == Replies::Simple {
        return refuse(number, reply::INVALID, "structured replies must be agreed on first", out);
    }
    let Some((name, is_wanted)) = name_and_wanted(data, selects) else {
        return refuse(number, reply::INVALID, "a name and a list of queries belong here", out);
    };
    let index = match find_served(name, exports) {
        Ok(index) => index,
        Err(words) => return refuse(number, reply::UNKNOWN, words, out),
    };
    if is_wanted && exports[index].has_map {
        let id = if selects { ALLOCATION_ID } else { 0 };
        option_reply(number, reply::META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION], out);
        if selects {
            terms.context = Some(index);
        }
    }
    option_reply(number, reply::ACK, &[], out);
    Agreed::Nothing
}

/// The name of an export, and whether one of the queries behind it means `base:allocation`. A list without queries means all
/// contexts, and knows a wildcard; a selection means what it names.
fn name_and_wanted(data: &[u8], selects: bool) -> Option<(&[u8], bool)> {
    let mut reader = Reader(data);
    let length = reader.u32()? as usize;
    let name = reader.take(length).filter(|name| name.len() <= NAME_MAX)?;
    let count = reader.u32()?;
    let mut is_wanted = count == 0 && !selects;
    for _ in 0..count {
        let length = reader.u32()? as usize;
        let query = reader.take(length)?;
        is_wanted |= query == ALLOCATION || (query == b"base:" && !selects);
    }
    reader.0.is_empty().then_some((name, is_wanted))
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
    exports.iter().position(|export| !export.is_gone && (name.is_empty() || export.name.as_bytes() == name))
}

/// Likewise, if clients can attach to it now; else why not.
fn find_served(name: &[u8], exports: &[Export]) -> Result<usize, &'static str> {
    let index = find(name, exports).ok_or("no export of that name")?;
    if exports[index].is_away { Err("the drive of that export is away") } else { Ok(index) }
}

/// Transmission flags: commands that a client may send, and their flags. One flush covers what all connections have written: clients may use several.
fn flags(terms: &Terms, export: &Export) -> u16 {
    use transmission::*;
    let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | CAN_MULTI_CONN | SEND_CACHE;
    let structured = if terms.replies == Replies::Structured { SEND_DF } else { 0 };
    let resizes = if export.can_resize { SEND_RESIZE } else { 0 };
    let read_only = if export.read_only { READ_ONLY } else { 0 };
    let maps = if export.has_map { SEND_FAST_ZERO } else { 0 };
    always | structured | resizes | read_only | maps
}

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
