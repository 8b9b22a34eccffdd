//! Directories whose files were damaged, cut or taken away: what is not there is an error to clients, or refused at the
//! start, and never zeros.

mod hosted;
mod small;

use flashyard_live::{Handle, Host, MediaError, Reader, SetUpError, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::log::{ErrorEntry, SmartLog, page};
use flashyard_nvme::nvm::{BlockRange, CopyRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_scenario::{Scenario, ScenarioError};
use hosted::NQN;
use small::{enclosure_of, scenario_with};
use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

fn scenario() -> Scenario {
    scenario_with(&["drive.filled=0.0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"])
}

fn serve<R: Send>(directory: &Path, client: impl FnOnce(&mut Host, Handle) -> R + Send) -> R {
    let connect = |address: SocketAddr, handle| {
        let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
        let mut host = Host::connect(address, config, Duration::from_secs(10)).expect("everybody may connect");
        client(&mut host, handle)
    };
    hosted::serve(&scenario(), Some(directory), Tempo::Off, connect).1
}

/// Bytes that fill the block.
fn filling(block: u64) -> Vec<u8> {
    (0..512_u64).flat_map(|word| (0xF1A5_0000_0000_0000 | block << 16 | word).to_le_bytes()).collect()
}

fn write(host: &mut Host, block: u64) {
    let range = BlockRange { lba: block, blocks: 1 };
    let written = host.command(1, NvmCommand::Write { range, fua: false }, filling(block), 0);
    assert_eq!(written.expect("an answer").status, Status::SUCCESS);
}

fn read(host: &mut Host, block: u64) -> Result<Vec<u8>, Status> {
    let range = BlockRange { lba: block, blocks: 1 };
    let read = host.command(1, NvmCommand::Read { range, fua: false }, Vec::new(), 4096).expect("an answer");
    if read.status.is_success() { Ok(read.data) } else { Err(read.status) }
}

fn number(bytes: [u8; 16]) -> u128 {
    u128::from_le_bytes(bytes)
}

/// Media errors and entries of the error log once the health log reports `count` of each: it is updated twice a second.
fn errors(host: &mut Host, count: u128) -> (u128, u128) {
    let begun = Instant::now();
    loop {
        let bytes = host.log_page(page::SMART, 512).expect("there is such a page");
        let smart = SmartLog::decode(&bytes).expect("it is whole");
        let found = (number(smart.media_errors), number(smart.error_entries));
        if found.0.min(found.1) >= count || begun.elapsed() > Duration::from_secs(10) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Flips a bit of a block where it lies.
fn damage(directory: &Path, block: u64) {
    let path = directory.join("drive-0.payload");
    let bytes = fs::read(&path).expect("it is there");
    let found = (0..bytes.len()).step_by(4096).find(|&at| bytes[at..at + 4096] == filling(block));
    let at = found.expect("the block is somewhere") as u64 + 1234;
    let file = OpenOptions::new().write(true).open(&path).expect("it can be written");
    file.write_all_at(&[bytes[at as usize] ^ 4], at).expect("it can be written");
}

/// A directory with eight blocks of drive 0, after a clean end.
fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    serve(directory.path(), |host, _| (0..8).for_each(|block| write(host, block)));
    directory
}

#[test]
fn a_damaged_block_is_an_unrecovered_read_error_until_it_is_written_however_the_last_server_ended() {
    for is_clean in [false, true] {
        let directory = written();
        damage(directory.path(), 3);
        if !is_clean {
            fs::remove_file(directory.path().join("clean")).expect("it was a clean end");
        }
        let unrecovered = Status::UNRECOVERED_READ.do_not_retry();
        serve(directory.path(), |host, _| {
            assert_eq!(read(host, 3), Err(unrecovered));
            assert_eq!(errors(host, 1), (1, 1));
            let entry = host.log_page(page::ERROR, 64).expect("there is such a page");
            let entry = ErrorEntry::decode(&entry).expect("it is whole");
            assert_eq!((entry.status.get() >> 1, entry.lba.get()), (unrecovered.bits(), 3));
            (0..8).filter(|&block| block != 3).for_each(|block| assert_eq!(read(host, block), Ok(filling(block))));
        });
        // Neither a restart nor time mends it, and what was counted stays counted.
        serve(directory.path(), |host, handle| {
            assert_eq!(read(host, 3), Err(unrecovered));
            assert_eq!(errors(host, 2), (2, 2));
            let counted =
                handle.call(|engine| engine.gauges(Reader::Operator).drives[0].health.media_errors).expect("it serves");
            assert_eq!(counted, 2);
            write(host, 3);
            assert_eq!(read(host, 3), Ok(filling(3)));
        });
        serve(directory.path(), |host, _| {
            (0..8).for_each(|block| assert_eq!(read(host, block), Ok(filling(block))));
            assert_eq!(errors(host, 2), (2, 2));
        });
    }
}

#[test]
fn a_copy_of_a_damaged_block_ends_with_its_error_and_names_its_range() {
    let directory = written();
    damage(directory.path(), 3);
    serve(directory.path(), |host, _| {
        let ranges = [(0, 2), (2, 2), (5, 1)].map(|(lba, blocks)| CopyRange::new(BlockRange { lba, blocks }));
        let copy = NvmCommand::Copy { first: 20, ranges: 3, format: 0, protection: 0, fua: false };
        let done = host.command(1, copy, ranges.as_bytes().to_vec(), 0).expect("an answer");
        assert_eq!((done.status, done.result), (Status::UNRECOVERED_READ.do_not_retry(), 1));
        let found: Vec<_> = (20..25).map(|block| read(host, block).expect("these are whole")).collect();
        assert!(found == [filling(0), filling(1), vec![0; 4096], vec![0; 4096], vec![0; 4096]]);
        let entry = host.log_page(page::ERROR, 64).expect("there is such a page");
        assert_eq!(ErrorEntry::decode(&entry).expect("it is whole").lba.get(), 3);
    });
}

fn refused(directory: &Path) -> (SetUpError<ScenarioError>, String) {
    let refused = enclosure_of(&scenario(), Some(directory)).err().expect("this directory is not as it was left");
    let text = refused.to_string();
    println!("{text}");
    (refused, text)
}

#[test]
fn a_payload_that_is_short_or_missing_is_refused_and_reads_of_one_made_whole_again_fail() {
    let directory = written();
    let path = directory.path().join("drive-0.payload");
    let whole = fs::metadata(&path).expect("it is there").len();
    let file = OpenOptions::new().write(true).open(&path).expect("it can be written");
    file.set_len(whole / 2).expect("it can be cut");
    let (error, text) = refused(directory.path());
    assert!(matches!(error, SetUpError::Media(MediaError::Incomplete { .. })), "{error:?}");
    assert!(text.contains(&format!("it has {} bytes, and {whole} bytes belong there", whole / 2)), "{text}");
    fs::remove_file(&path).expect("it can be removed");
    let (_, text) = refused(directory.path());
    assert!(text.contains("it is missing") && text.contains(&format!("truncate -s {whole}")), "{text}");
    File::create(&path).and_then(|file| file.set_len(whole)).expect("there is room");
    serve(directory.path(), |host, _| {
        (0..8).for_each(|block| assert_eq!(read(host, block), Err(Status::UNRECOVERED_READ.do_not_retry())));
        assert_eq!(read(host, 8), Ok(vec![0; 4096]), "what was never written is zeros");
    });
}

#[test]
fn records_that_have_changed_since_a_clean_end_are_refused() {
    let directory = written();
    let path = directory.path().join("drive-0.band");
    let band = fs::read(&path).expect("it is there");
    let at = (4096..band.len()).rev().find(|&at| band[at] != 0).expect("there are records");
    let file = OpenOptions::new().write(true).open(&path).expect("it can be written");
    file.write_all_at(&[0; 24], at as u64 - 23).expect("it can be written");
    // However often it is tried.
    for _ in 0..2 {
        assert!(matches!(refused(directory.path()).0, SetUpError::Media(MediaError::Changed { .. })));
    }
    fs::write(&path, &band).expect("it can be written");
    serve(directory.path(), |host, _| assert_eq!(read(host, 7), Ok(filling(7))));
    fs::remove_file(&path).expect("it can be removed");
    let (error, text) = refused(directory.path());
    assert!(matches!(error, SetUpError::Media(MediaError::Incomplete { .. })) && !text.contains("truncate"), "{text}");
}

#[test]
fn a_directory_that_holds_drives_is_never_taken_for_a_new_one() {
    let directory = written();
    let label = directory.path().join("enclosure.txt");
    let kept = fs::read(&label).expect("it is there");
    fs::remove_file(&label).expect("it can be removed");
    let (error, text) = refused(directory.path());
    assert!(matches!(error, SetUpError::Media(MediaError::Unlabelled { .. })), "{error:?}");
    assert!(text.contains("enclosure.txt is missing, but drive-"), "{text}");
    fs::write(&label, kept).expect("it can be written");
    serve(directory.path(), |host, _| assert_eq!(read(host, 0), Ok(filling(0))));
    // A directory whose making was interrupted holds nothing yet.
    fs::remove_file(&label).expect("it can be removed");
    fs::write(directory.path().join("unfinished"), "").expect("it can be written");
    serve(directory.path(), |host, _| assert_eq!(read(host, 0), Ok(vec![0; 4096])));
    assert!(label.exists() && !directory.path().join("unfinished").exists());
}

#[test]
fn a_directory_of_an_earlier_version_is_known_by_its_old_label_which_gets_the_new_name() {
    let directory = written();
    let [old, label] = ["box.txt", "enclosure.txt"].map(|name| directory.path().join(name));
    fs::rename(&label, &old).expect("it is ours");
    serve(directory.path(), |host, _| assert_eq!(read(host, 0), Ok(filling(0))));
    assert!(label.exists() && !old.exists());
}

#[test]
fn a_directory_and_all_in_it_are_for_their_owner_only_also_one_of_an_earlier_version() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let directory = parent.path().join("data");
    serve(&directory, |host, _| write(host, 0));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let names = ["drive-0.payload", "drive-0.band", "drive-3.band", "enclosure.txt", "lock", "clean"];
    names.iter().for_each(|name| assert_eq!(mode(&directory.join(name)), 0o600, "{name}"));
    for name in names {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o644)).expect("it is ours");
    }
    // The file of a clean end that an earlier version left is empty.
    fs::write(directory.join("clean"), "").expect("it can be written");
    serve(&directory, |host, _| assert_eq!(read(host, 0), Ok(filling(0))));
    names.iter().for_each(|name| assert_eq!(mode(&directory.join(name)), 0o600, "{name}"));
}
