//! A small sample of every format of loads and stores: each is told from its content, plain and compressed, and no other bytes make a reader
//! panic, give an access that straddles a line, or fail without a place.

use flashyard_memory::{Access, AccessKind};
use flashyard_trace_io::{AccessFormat, TraceError, open_accesses, open_accesses_stream};
use flashyard_units::Named;
use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::path::Path;

/// Two instructions with a load and a store each, and one without an access between them.
fn champsim() -> Vec<u8> {
    let record = |load: u64, store: u64| {
        let mut record = [0; 64];
        record[..8].copy_from_slice(&0x40_1000_u64.to_le_bytes());
        record[16..24].copy_from_slice(&store.to_le_bytes());
        record[32..40].copy_from_slice(&load.to_le_bytes());
        record
    };
    [record(0x1000, 0x2000), record(0, 0), record(0x1040, 0x2040)].concat()
}

fn sample(format: AccessFormat) -> Vec<u8> {
    let text = match format {
        AccessFormat::Lackey => {
            "==9== Lackey, an example\nI  04001000,3\n L 1ffeff7e0,8\n S 1ffeff83c,8\nI  04001003,2\n"
        }
        AccessFormat::Gem5 => "r,4096,64,0,1000\nw,8192,64,0,2000,17,4198400\n14,8192,64,0,3000\n",
        AccessFormat::Csv => "op,address,size,gap\nload,0x1000,8,3\nstore,8200,8,0\n",
        AccessFormat::Ucsd => "s 0x1fffff50 1\nl 0x1fffff58 6\n",
        AccessFormat::Ramulator => "0 9618752\n9 89618496 4096\n",
        AccessFormat::Champsim => return champsim(),
    };
    text.as_bytes().to_vec()
}

/// All accesses, and the format that they were read in.
fn read(bytes: &[u8], format: Option<AccessFormat>) -> Result<(AccessFormat, Vec<Access>), TraceError> {
    let reader = open_accesses_stream(Path::new("sample"), Cursor::new(bytes.to_vec()), format)?;
    let format = reader.format();
    Ok((format, reader.collect::<Result<_, _>>()?))
}

#[test]
fn every_sample_is_told_from_its_content() {
    for &format in AccessFormat::ALL {
        let (told, accesses) = read(&sample(format), None).unwrap_or_else(|error| panic!("{format:?}: {error}"));
        assert_eq!(told, format);
        let expected = if matches!(format, AccessFormat::Lackey | AccessFormat::Ramulator) { 3 } else { 2 };
        let expected = if format == AccessFormat::Champsim { 4 } else { expected };
        assert_eq!(accesses.len(), expected, "{format:?}: {accesses:?}");
        assert!(accesses.iter().any(|access| access.kind == AccessKind::Store), "{format:?}");
    }
}

#[test]
fn gaps_are_instructions_without_accesses() {
    let gaps = |format| -> Vec<u32> {
        read(&sample(format), None).expect("it is good").1.iter().map(|access| access.gap).collect()
    };
    assert_eq!(gaps(AccessFormat::Champsim), [0, 0, 1, 0]);
    assert_eq!(gaps(AccessFormat::Csv), [3, 0]);
    assert_eq!(gaps(AccessFormat::Ucsd), [0, 5]);
    assert_eq!(gaps(AccessFormat::Lackey), [0, 0, 0]);
}

#[test]
fn a_byte_order_mark_and_quotes_are_no_part_of_a_row() {
    for &format in AccessFormat::ALL.iter().filter(|format| **format != AccessFormat::Champsim) {
        let marked = [&b"\xef\xbb\xbf"[..], &sample(format)].concat();
        assert_eq!(read(&marked, None).ok(), read(&sample(format), None).ok(), "{format:?}");
    }
    let quoted =
        b"\"op\",\"address\",\"size\",\"gap\"\n\"load\",\"0x1000\",\"8\",\"3\"\n\"store\",\"8200\",\"8\",\"0\"\n";
    assert_eq!(read(quoted, None).ok(), read(&sample(AccessFormat::Csv), None).ok());
}

#[test]
fn every_sample_is_told_when_it_is_compressed() {
    for &format in AccessFormat::ALL {
        let plain = sample(format);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).expect("memory has room");
        for packed in [zstd::encode_all(&plain[..], 1), gzip.finish()] {
            let packed = packed.expect("it can be compressed");
            assert_eq!(read(&packed, None).map(|found| found.0).ok(), Some(format));
        }
    }
}

/// The sample of UCSD, as `xz -9` packs it.
const XZ: [u8; 84] = [
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x1c, 0x00, 0x00,
    0x00, 0x10, 0xcf, 0x58, 0xcc, 0xe0, 0x00, 0x1d, 0x00, 0x17, 0x5d, 0x00, 0x39, 0x88, 0x02, 0x07, 0xc1, 0xcf, 0x7e,
    0xf4, 0x13, 0x71, 0xda, 0x07, 0x52, 0xf4, 0x03, 0xb3, 0x23, 0x8a, 0x12, 0x97, 0x07, 0x3a, 0x80, 0x00, 0x00, 0xd0,
    0xc5, 0x2b, 0xc8, 0x2a, 0x1a, 0x27, 0x38, 0x00, 0x01, 0x33, 0x1e, 0x78, 0xed, 0xe2, 0x2e, 0x1f, 0xb6, 0xf3, 0x7d,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
];

#[test]
fn xz_is_read_and_its_damage_is_seen() {
    let plain = read(&sample(AccessFormat::Ucsd), None).expect("it is good");
    assert_eq!(read(&XZ, None).expect("it is good"), plain);
    // Several streams behind each other are one file.
    assert_eq!(read(&[XZ, XZ].concat(), None).expect("it is good").1.len(), 4);
    let mut damaged = XZ;
    damaged[40] ^= 0x55;
    assert!(read(&damaged, None).is_err());
    assert!(read(&XZ[..60], None).is_err());
}

#[test]
fn errors_say_where_and_what_is_accepted() {
    let error = |bytes: &[u8], format| read(bytes, format).expect_err("it is wrong").to_string();
    let text = "op,address\nload,64\nlaod,64\n".repeat(40);
    let found = error(text.as_bytes(), Some(AccessFormat::Csv));
    assert!(found.starts_with("sample:3: \"laod,64\" is no row of format csv"), "{found}");
    let found = error(b"\nhello\n", None);
    assert!(found.starts_with("sample:2: no known format") && found.contains("lackey, gem5, csv"), "{found}");
    let found = error(b"==1== nothing else\n", Some(AccessFormat::Lackey));
    assert!(found.contains("holds no rows of format lackey, only 1 other"), "{found}");
    assert!(error(b"", None).contains("holds no rows"));
    let found = error(&champsim()[..150], Some(AccessFormat::Champsim));
    assert!(found.contains("byte 128") && found.contains("22 bytes"), "{found}");
    assert!(open_accesses(Path::new("/there/is/none"), None).is_err());
}

#[test]
fn recorded_traces_are_read_to_their_end() {
    let Some(traces) = flashyard_conformance::traces("recorded loads and stores are not read") else { return };
    for (name, format, loads, stores) in [
        ("gcc.trace.zst", AccessFormat::Ucsd, 318_197, 197_486),
        ("cputrace-403.gcc.zst", AccessFormat::Ramulator, 45_675, 4_349),
        ("cputrace-445.gobmk.zst", AccessFormat::Ramulator, 107_852, 70_252),
    ] {
        let reader = open_accesses(&traces.join("memory").join(name), None).expect(name);
        assert_eq!(reader.format(), format, "{name}");
        let accesses: Vec<Access> = reader.collect::<Result<_, _>>().expect(name);
        let count = |kind| accesses.iter().filter(|access| access.kind == kind).count();
        assert_eq!((count(AccessKind::Load), count(AccessKind::Store)), (loads, stores), "{name}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_accesses_within_lines_or_an_error_with_a_place(
        start in 0_usize..6, cut in 0_usize..200, bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut input = sample(AccessFormat::ALL[start]);
        input.truncate(cut);
        input.extend(&bytes);
        for format in AccessFormat::ALL.iter().copied().map(Some).chain([None]) {
            match read(&input, format) {
                Ok((_, accesses)) => prop_assert!(!accesses.is_empty()),
                Err(error) => prop_assert!(error.to_string().starts_with("sample"), "{}", error),
            }
        }
    }
}
