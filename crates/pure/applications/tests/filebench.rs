//! Personalities on CVFS: contents against a model of the files, and pages that are neither made nor lost.

use flashyard_applications::filebench::{Personality, PersonalityName, Program};
use flashyard_applications::{CvfsFiles, Files, FilesError};
use flashyard_cvfs::{Config, FileSystem, Format, MemoryDevice};
use std::collections::BTreeMap;

/// Files beside a model of them, which every read is held against.
struct Checked {
    files: CvfsFiles<MemoryDevice>,
    model: BTreeMap<u32, Vec<u8>>,
}

impl Checked {
    fn new(blocks: u32, width: u32) -> Self {
        let config = Config { dirty_pages_max: 300, ..Config::default() };
        let format = Format { segment_blocks: 64, id: 1 };
        let fs = FileSystem::format(MemoryDevice::new(blocks), format, config, 0).expect("the device is large enough");
        Self { files: CvfsFiles::new(fs, width), model: BTreeMap::new() }
    }

    fn compare_all(&mut self) {
        for (&number, bytes) in &self.model {
            let mut found = vec![0; bytes.len() + 1];
            let count = self.files.read(number, 0, &mut found).expect("the file is there");
            assert!(count == bytes.len() && found[..count] == bytes[..], "file {number} differs");
        }
    }
}

impl Files for Checked {
    fn create(&mut self, number: u32) -> Result<(), FilesError> {
        self.files.create(number)?;
        assert!(self.model.insert(number, Vec::new()).is_none());
        Ok(())
    }

    fn write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        self.files.write(number, offset, bytes)?;
        let model = self.model.get_mut(&number).expect("it was made");
        let end = offset as usize + bytes.len();
        model.resize(model.len().max(end), 0);
        model[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, number: u32, offset: u64, buffer: &mut [u8]) -> Result<usize, FilesError> {
        let count = self.files.read(number, offset, buffer)?;
        assert_eq!(buffer[..count], self.model[&number][offset as usize..][..count], "file {number} at {offset}");
        Ok(count)
    }

    fn size(&mut self, number: u32) -> Result<u64, FilesError> {
        let size = self.files.size(number)?;
        assert_eq!(size, self.model[&number].len() as u64);
        Ok(size)
    }

    fn delete(&mut self, number: u32) -> Result<(), FilesError> {
        self.files.delete(number)?;
        assert!(self.model.remove(&number).is_some());
        Ok(())
    }

    fn fsync(&mut self, number: u32) -> Result<(), FilesError> {
        self.files.fsync(number)
    }
}

/// Runs a personality and checks everything; returns the bytes that it read and wrote.
fn run(name: PersonalityName, entries: u32, blocks: u32, steps: u32) -> (u64, u64) {
    let personality = Personality::of(name);
    let mut checked = Checked::new(blocks, personality.directory_width);
    let mut program = Program::new(personality, entries, 7);
    while program.preallocate(&mut checked, 10).expect("there is room") {}
    let mut total = (0, 0);
    for step in 0..steps {
        let done = program.step(step % personality.threads, &mut checked).expect("there is room");
        total.0 += done.bytes.0;
        total.1 += done.bytes.1;
    }
    checked.compare_all();
    // Pages put into memory and carried by cleaning are written, absorbed, dropped, or still there.
    let (counters, usage) = (checked.files.fs().counters(), checked.files.fs().usage());
    assert_eq!(
        counters.pages_put + counters.pages_carried,
        counters.pages_written + counters.pages_absorbed + counters.pages_dropped + usage.pages_dirty
    );
    checked.files.fs_mut().sync().expect("the device is sound");
    let report = checked.files.fs_mut().check().expect("the device is sound");
    assert!(report.is_clean(), "{report:?}");
    // And after a loss of power that follows a checkpoint.
    let model = std::mem::take(&mut checked.model);
    let inodes: Vec<(u32, u32)> =
        model.keys().map(|&number| (number, checked.files.inode(number).expect("there"))).collect();
    let device = checked.files.fs().device().clone();
    let mut again = FileSystem::mount(device, Config::default()).expect("it was in order");
    for (number, ino) in inodes {
        let mut found = vec![0; model[&number].len()];
        again.read(ino, 0, &mut found).expect("it is there");
        assert!(found == model[&number], "file {number} differs after a mount");
    }
    program.remove(&mut Checked { files: checked.files, model }).expect("all is there");
    total
}

#[test]
fn a_file_server_reads_what_it_wrote() {
    let (read, written) = run(PersonalityName::Fileserver, 300, 24_000, 11_000);
    // A whole file and half an append are written for each that is read, which has had appends of its own.
    let ratio = written as f64 / read as f64;
    assert!((0.6..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn a_network_file_server_reads_what_it_wrote() {
    let (read, written) = run(PersonalityName::Netsfs, 2000, 24_000, 11_000);
    assert!(read > written && written > 0, "nine files are read for six that are written: {read} {written}");
}

#[test]
fn a_mail_server_reads_what_it_wrote() {
    let (read, written) = run(PersonalityName::Varmail, 400, 8000, 13_000);
    assert!(read > 0 && written > 0);
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let traffic = |seed| {
        let personality = Personality::of(PersonalityName::Varmail);
        let mut checked = Checked::new(8000, personality.directory_width);
        let mut program = Program::new(personality, 200, seed);
        while program.preallocate(&mut checked, 10).expect("there is room") {}
        for step in 0..2000 {
            program.step(step % 16, &mut checked).expect("there is room");
        }
        checked.files.fs().device().traffic
    };
    assert_eq!(traffic(1), traffic(1));
    assert_ne!(traffic(1), traffic(2));
}

#[test]
fn a_web_server_reads_ten_pages_for_a_line_of_its_log() {
    let (read, written) = run(PersonalityName::Webserver, 300, 16_000, 31_000);
    // Ten pages of 16 KiB for 8 KiB in the mean.
    let ratio = read as f64 / written as f64;
    assert!((15.0..25.0).contains(&ratio), "{ratio}");
}
