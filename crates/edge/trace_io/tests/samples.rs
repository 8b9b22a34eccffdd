//! One small sample of every format: each is detected from its content, and no change to it, nor any other bytes, makes
//! a reader or the detection panic, pass a request that does not fit, or fail without a place.

use flashyard_trace_io::{Format, OpenOptions, TraceError, open_stream};
use proptest::prelude::*;
use std::io::Cursor;
use std::path::Path;

/// Formats that are never detected, as their pages say: an event that is not the earliest, a unit.
const BY_NAME_ONLY: [&str; 5] =
    ["arc-pages", "blkparse-issue", "blkparse-complete", "blktrace-issue", "blktrace-complete"];

fn le(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|(value, bytes)| value.to_le_bytes()[..*bytes].to_vec()).collect()
}

/// Events queued, issued and completed, one followed by something.
fn blktrace() -> Vec<u8> {
    let event = |ns: u64, action: u64, follow: u64| {
        let header =
            [(0x6561_7407, 4), (9, 4), (ns, 8), (64, 8), (4_096, 4), (action, 4), (7, 4), (0x80_0010, 4), (0, 4)];
        [le(&header), le(&[(0, 2), (follow, 2)]), vec![1; follow as usize]].concat()
    };
    [event(500, 0x1_0001, 0), event(700, 0x2_0001, 12), event(900, 0x1_0007, 0), event(950, 0x1_0008, 0)].concat()
}

/// A valid sample of a format, by its name.
fn sample(name: &str) -> Vec<u8> {
    let text = match name {
        "msr" => "128166372003061629,web,0,Read,8192,4096,1331\n128166372013061629,web,1,Write,512,512,90\n",
        "web3" => "128166372003061000 Read 8192 4096\n128166372013061000\tWrite\t1.5E+05\t512\n",
        "tencent" => "1538323300,16,8,1,77\n1538323301,24,16,0,78\n",
        "profile" => "0.500,92,1,4096,8192,0.511,4096\n1.250,70,0,8192,4096,1.251,8192\n",
        "replay" => "0.250 0 8192 4096 1\n1.250 0 16384 8192 0\n",
        "disksim-pages" => "0.500\t0\t16\t1\t0\n2.750\t0\t80\t3\t1\n",
        "disksim-ms" => "0.500 0 16 8 0\n2.750 1 83 24 1\n",
        "disksim-us" => "500 0 16 8 0\n2750 1 83 24 1\n",
        "disksim-ns" => "500000 0 16 8 0\n2750000 1 83 24 1\n",
        "blkparse-queue" | "blkparse-issue" | "blkparse-complete" => {
            "8,0 1 1 0.000000500 77 Q R 16 + 8 [sh]\n8,0 1 2 0.000000900 77 D R 16 + 8 [sh]\n\
             8,0 1 3 0.000001500 77 C WS 16 + 8 [0]\n"
        }
        "fiu" => {
            "500 7 sh 16 8 W 6 0 00112233445566778899aabbccddeeff\n\
             900 7 a b 24 8 R 6 0 00112233445566778899aabbccddeeff\n"
        }
        "spc" => "0,16,4096,r,0.500000\n1,24,512,W,0.750000\n",
        "nexus" => {
            "16\t\t8\t\t4096\t\t4\t\t1.5\t\t1.6\t\t1.7\t\t1.8\n24\t\t8\t\t4096\t\t1\t\t2.5\t\t2.6\t\t2.7\t\t2.8\n"
        }
        "amber" => "500 16 8 R\n900.5 24 16 W\n",
        "alibaba" => "3,R,8192,4096,1577808000000017\n4,W,4096,512,1577808000000018\n",
        "systor" => {
            "Timestamp,Response,IOType,LUN,Offset,Size\n1455500000.25,0.0002,R,3,65536,8192\n\
             1455500000.5,,W,3,65536,8192\n"
        }
        "arc" | "arc-pages" => "16 8 0 0\n64 1 0 1\n",
        "rmem" => "0 -1400000000000005 3 2 4096\n1 1400000000000009 5 1 4096\n",
        "netapp" => {
            "#ELAPSED_USECS.D,CMD.S,LUN_SSID.I,LBA.I,NBLKS.I\n1.500,RD_IN,1,16,8\n2.500,RD_OUT,1,16,8\n3.5,WR_IN,1,24,8\n"
        }
        "tectonic" => {
            "op_time,block_id,block_id_size,io_size,io_offset,op_name\n1700000000,ab,2,4096,512,getChunkData.Permanent\n\
             1700000001,ac,2,4096,0,putChunk.Permanent\n"
        }
        "fio2" => "fio version 2 iolog\n/a add\n/a open\n/a read 8192 4096\n/a wait 500 0\n/a write 0 512\n/a close\n",
        "fio3" => "fio version 3 iolog\n0 /a add\n1 /a open\n7 /a read 8192 4096\n9 /a trim 0 4096\n9 /a close\n",
        "csv" => "time_us,op,offset_bytes,size_bytes,volume\n500,R,8192,4096,0\n900,W,4096,512,1\n",
        "vscsi1" => {
            let record = |us| [(5, 4), (8_192, 4), (1, 4), (0x28, 2), (0x100, 2), (16, 8), (us, 8)];
            return [le(&record(500)), le(&record(900))].concat();
        }
        "vscsi2" => {
            let record = |us| [(0x2A, 2), (0x200, 2), (5, 4), (8_192, 4), (1, 4), (16, 8), (us, 8), (90, 8)];
            return [le(&record(500)), le(&record(900))].concat();
        }
        "oracleGeneral" => {
            let record = |seconds, next| [(seconds, 4), (5, 8), (700, 4), (next, 8)];
            return [le(&record(3, 1)), le(&record(4, u64::MAX))].concat();
        }
        "blktrace-queue" | "blktrace-issue" | "blktrace-complete" => return blktrace(),
        other => panic!("the format {other} has no sample: add one"),
    };
    text.as_bytes().to_vec()
}

/// Everything that a reading gave.
struct Found {
    format: &'static str,
    rows: u64,
}

/// Reads to the end; checks every record.
fn read(bytes: &[u8], format: Option<Format>) -> Result<Found, TraceError> {
    let bytes = Cursor::new(bytes.to_vec());
    let mut reader = open_stream(Path::new("sample"), bytes, OpenOptions { format })?;
    let mut latest = None;
    for record in &mut reader {
        let record = record?;
        assert!(record.request.len_bytes > 0 && record.request.end_bytes().is_some());
        assert!(Some(record.arrival) >= latest, "arrivals never go back");
        latest = Some(record.arrival);
    }
    Ok(Found { format: reader.format().name(), rows: reader.counts().rows })
}

/// Whether the message says where: the file, and the line or byte where there is one.
fn has_place(error: &TraceError) -> bool {
    let text = error.to_string();
    let place = match error {
        TraceError::Row { line, .. } | TraceError::UnknownFormat { line, .. } | TraceError::NotText { line, .. } => {
            *line > 0 && text.contains(&format!("sample:{line}:"))
        }
        TraceError::Damaged { line, .. } => text.contains(&format!("sample:{line}:")),
        TraceError::Record { offset, .. } => text.contains(&format!("byte {offset}")),
        TraceError::DamagedBytes { offset, .. } => text.contains(&format!("byte {offset}")),
        TraceError::Open { .. } | TraceError::Empty { .. } | TraceError::NoRows { .. } => true,
        TraceError::CpuFiles { .. } => true,
    };
    place && text.starts_with("sample")
}

fn try_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    for format in Format::all().map(Some).chain([None]) {
        if let Err(error) = read(bytes, format) {
            prop_assert!(has_place(&error), "{format:?}: {error}");
        }
    }
    Ok(())
}

#[test]
fn every_sample_is_told_from_its_content() {
    for format in Format::all() {
        let bytes = sample(format.name());
        let found = read(&bytes, Some(format)).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.rows > 0, "{format:?}");
        if !BY_NAME_ONLY.contains(&format.name()) {
            let told = read(&bytes, None).unwrap_or_else(|error| panic!("{format:?}: {error}"));
            assert_eq!((told.format, told.rows), (found.format, found.rows));
        }
    }
}

#[test]
fn every_sample_is_told_when_it_is_compressed() {
    for format in Format::all().filter(|format| !BY_NAME_ONLY.contains(&format.name())) {
        let packed = zstd::encode_all(&sample(format.name())[..], 1).expect("it can be compressed");
        assert_eq!(read(&packed, None).map(|found| found.format).ok(), Some(format.name()));
    }
}

#[test]
fn one_format_is_never_read_as_another_of_the_other_kind() {
    for format in Format::all() {
        let bytes = sample(format.name());
        let binary = bytes.contains(&0);
        for other in Format::all().filter(|other| sample(other.name()).contains(&0) != binary) {
            assert!(read(&bytes, Some(other)).is_err(), "{format:?} as {other:?}");
        }
    }
}

#[test]
fn a_cut_record_is_an_error_with_its_byte() {
    for (name, at) in [("vscsi1", 32), ("vscsi2", 40), ("oracleGeneral", 24)] {
        let bytes = sample(name);
        for cut in at + 1..bytes.len() {
            let error = read(&bytes[..cut], None).map(|_| ()).expect_err(name);
            assert!(matches!(error, TraceError::Record { offset, .. } if offset == at as u64), "{name} {cut}: {error}");
        }
    }
    let bytes = blktrace();
    for (cut, at) in [(1, 0), (47, 0), (49, 48), (48 + 50, 48), (48 + 59, 48), (bytes.len() - 1, bytes.len() - 48)] {
        let error = read(&bytes[..cut], Format::by_name("blktrace-queue")).map(|_| ()).expect_err("it is cut");
        assert!(matches!(error, TraceError::Record { offset, .. } if offset == at as u64), "{cut}: {error}");
    }
}

#[test]
fn a_binary_bomb_is_refused_at_its_first_wrong_record() {
    // 256 MiB of nothing in a few kilobytes: no format reads beyond a record and its buffers.
    let bomb = zstd::encode_all(&vec![0; 1 << 28][..], 1).expect("it can be compressed");
    for name in ["vscsi1", "vscsi2", "blktrace-queue"] {
        let error = read(&bomb, Format::by_name(name)).map(|_| ()).expect_err(name);
        assert!(matches!(error, TraceError::Record { offset: 0, .. }), "{error}");
    }
}

/// A change to a sample.
#[derive(Clone, Debug)]
enum Change {
    Set(usize, u8),
    Cut(usize),
    Repeat(usize, usize),
    Splice(usize, Vec<u8>),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = 0..4_096_usize;
    let change = prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (at.clone(), prop::sample::select(&b"0123456789,. \t-\n"[..])).prop_map(|(at, byte)| Change::Set(at, byte)),
        at.clone().prop_map(Change::Cut),
        (at.clone(), 1..64_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        (at, prop::collection::vec(any::<u8>(), 1..24)).prop_map(|(at, bytes)| Change::Splice(at, bytes)),
    ];
    prop::collection::vec(change, 1..6)
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let place = |at: usize| at % (bytes.len() + 1);
        match change {
            Change::Set(at, byte) => {
                let at = place(*at);
                if let Some(found) = bytes.get_mut(at) {
                    *found = *byte;
                }
            }
            Change::Cut(at) => bytes.truncate(place(*at)),
            Change::Repeat(at, count) => {
                let at = place(*at);
                let piece = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            Change::Splice(at, piece) => {
                let at = place(*at);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

fn any_format() -> impl Strategy<Value = Format> {
    prop::sample::select(Format::all().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn no_bytes_make_any_reader_or_the_detection_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        try_all(&bytes)?;
    }

    #[test]
    fn no_change_to_a_sample_makes_any_reader_panic(format in any_format(), changes in changes()) {
        try_all(&changed(sample(format.name()), &changes))?;
    }

    #[test]
    fn no_mixture_of_two_samples_makes_any_reader_panic(
        one in any_format(), other in any_format(), changes in changes(), packed in any::<bool>(),
    ) {
        let bytes = changed([sample(one.name()), sample(other.name())].concat(), &changes);
        let bytes = if packed { zstd::encode_all(&bytes[..], 1).expect("it can be compressed") } else { bytes };
        try_all(&bytes)?;
    }

    #[test]
    fn no_change_to_a_compressed_sample_makes_any_reader_panic(format in any_format(), changes in changes()) {
        let packed = zstd::encode_all(&sample(format.name())[..], 1).expect("it can be compressed");
        try_all(&changed(packed, &changes))?;
    }
}
