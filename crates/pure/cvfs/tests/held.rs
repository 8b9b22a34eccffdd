//! Files that are open, and numbers that a kernel knows, while names go.

use flashyard_cvfs::{
    Config, FileSystem, Format, FsError, Kind, MemoryDevice, NewInode, ROOT, forget_number, know_number,
};
use flashyard_kernel::Rng;
use std::collections::{BTreeMap, BTreeSet};

type Fs = FileSystem<MemoryDevice>;

fn volume(blocks: u32) -> Fs {
    let format = Format { segment_blocks: 16, id: 5 };
    FileSystem::format(MemoryDevice::new(blocks), format, Config::default(), 0).expect("it has room")
}

fn make(fs: &mut Fs, name: &str) -> Result<u32, FsError> {
    let ino = fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0)?;
    fs.write(ino, 0, &ino.to_le_bytes(), 0)?;
    Ok(ino)
}

fn delete(fs: &mut Fs, name: &str) -> Result<(), FsError> {
    fs.unlink(ROOT, name.as_bytes(), 0)
}

/// Whether a number still is that of the file that was made with it.
fn is_there(fs: &mut Fs, ino: u32) -> bool {
    let mut found = [0; 4];
    fs.read(ino, 0, &mut found) == Ok(4) && found == ino.to_le_bytes()
}

fn assert_clean(fs: &mut Fs) {
    let report = fs.check().expect("memory does not fail");
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn open_files_that_are_deleted_stop_only_more_of_them() {
    let mut fs = volume(6000);
    let open: Vec<u32> = (0..510).map(|number| make(&mut fs, &number.to_string()).expect("there is room")).collect();
    let (known, other) =
        (make(&mut fs, "known").expect("there is room"), make(&mut fs, "other").expect("there is room"));
    know_number(&mut fs, known).expect("it is there");
    for &ino in &open {
        know_number(&mut fs, ino).expect("it is there");
        fs.open(ino).expect("it is there");
    }
    let refused =
        (0..510).filter(|number| delete(&mut fs, &number.to_string()) == Err(FsError::TooManyOrphans)).count();
    assert_eq!(refused, 10);
    assert_eq!((delete(&mut fs, "known"), delete(&mut fs, "other")), (Ok(()), Ok(())));
    assert_eq!([known, other].map(|ino| fs.inode(ino)), [Err(FsError::NotFound), Err(FsError::NotFound)]);
    let directory = fs.create(ROOT, b"d", NewInode::of(Kind::Directory, 0o755), 0).expect("there is room");
    know_number(&mut fs, directory).expect("it is there");
    fs.remove_directory(ROOT, b"d", 0).expect("it is empty");
    // A checkpoint has room for the others, and the next mount deletes them.
    fs.sync().expect("it has room");
    assert!(open.iter().all(|&ino| is_there(&mut fs, ino)));
    assert_clean(&mut fs);
    let mut fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it is whole");
    assert_eq!(open.iter().filter(|&&ino| is_there(&mut fs, ino)).count(), 10);
    assert_clean(&mut fs);
}

#[test]
fn a_number_that_a_kernel_knows_is_not_that_of_another_file() {
    let mut fs = volume(2000);
    let files: Vec<u32> = (0..600).map_while(|number| make(&mut fs, &number.to_string()).ok()).collect();
    assert!(files.len() > 400, "{}", files.len());
    for (number, &ino) in files.iter().enumerate() {
        know_number(&mut fs, ino).expect("it is there");
        delete(&mut fs, &number.to_string()).expect("it is not open");
    }
    let stay = files.iter().filter(|&&ino| is_there(&mut fs, ino)).count();
    assert_eq!(stay, 250, "half of the places of a checkpoint");
    assert_clean(&mut fs);
    // Numbers run out before any of these is used again, and that is no more than a refusal.
    let mut made = Vec::new();
    let refused = loop {
        match fs.create(ROOT, format!("more{}", made.len()).as_bytes(), NewInode::of(Kind::File, 0o644), 0) {
            Ok(ino) => made.push(ino),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, FsError::NoSpace);
    let known: BTreeSet<u32> = files.iter().copied().collect();
    assert!(made.iter().all(|ino| !known.contains(ino)));
    fs.sync().expect("nothing is frozen");
    files.iter().for_each(|&ino| forget_number(&mut fs, ino, 1).expect("memory does not fail"));
    assert_eq!(files.iter().filter(|&&ino| is_there(&mut fs, ino)).count(), 0);
    for number in 0..100 {
        made.push(make(&mut fs, &format!("again{number}")).expect("there are numbers again"));
    }
    assert_clean(&mut fs);
}

/// A file of the model.
#[derive(Clone, Copy, Debug, Default)]
struct File {
    has_name: bool,
    open: u32,
    known: u64,
}

#[test]
fn files_are_there_while_they_have_a_name_or_are_open_and_numbers_stay_theirs_while_they_are_known() {
    for seed in 0..20 {
        let (mut rng, mut fs) = (Rng::named(seed, "held"), volume(1200));
        let mut files: BTreeMap<u32, File> = BTreeMap::new();
        for step in 0..1500_u64 {
            let nth = rng.below(files.len().max(1) as u64) as usize;
            let one = files.keys().nth(nth).copied();
            match (rng.below(12), one) {
                (0..3, _) => match make(&mut fs, &step.to_string()) {
                    Ok(ino) => {
                        // Its name is found by its number from here on.
                        fs.rename((ROOT, step.to_string().as_bytes()), (ROOT, format!("i{ino}").as_bytes()), false, 0)
                            .expect("the name is free");
                        assert!(
                            files.insert(ino, File { has_name: true, ..File::default() }).is_none(),
                            "{ino} at {step}"
                        );
                    }
                    Err(error) => assert_eq!(error, FsError::NoSpace),
                },
                (3..6, Some(ino)) if files[&ino].has_name => {
                    delete(&mut fs, &format!("i{ino}")).expect("few are open");
                    files.entry(ino).or_default().has_name = false;
                }
                (6 | 7, Some(ino)) => match fs.open(ino) {
                    Ok(()) => files.entry(ino).or_default().open += 1,
                    Err(error) => assert_eq!(error, FsError::NotFound),
                },
                (8, Some(ino)) if files[&ino].open > 0 => {
                    fs.release(ino).expect("memory does not fail");
                    files.entry(ino).or_default().open -= 1;
                }
                (9, Some(ino)) => match know_number(&mut fs, ino) {
                    Ok(()) => files.entry(ino).or_default().known += 1,
                    Err(error) => assert_eq!(error, FsError::NotFound),
                },
                (10, Some(ino)) => {
                    let times = 1 + rng.below(2);
                    forget_number(&mut fs, ino, times).expect("memory does not fail");
                    let known = &mut files.entry(ino).or_default().known;
                    *known = known.saturating_sub(times);
                }
                (11, _) => fs.sync().expect("memory does not fail"),
                _ => {}
            }
            if let Some(ino) = one {
                let File { has_name, open, known } = files[&ino];
                let held = has_name || open > 0;
                assert!(!held || is_there(&mut fs, ino), "seed {seed}: {ino} at {step}");
                if !held && known == 0 {
                    assert!(!is_there(&mut fs, ino), "seed {seed}: {ino} at {step}");
                    files.remove(&ino);
                }
            }
        }
        assert_clean(&mut fs);
    }
}
