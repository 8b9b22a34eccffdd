//! Other people's programs on a mounted volume, while it shrinks.

use flashyard_conformance::{has_fuse, has_program};
use flashyard_cvfs::{Config, FileSystem, Format, Method};
use flashyard_cvfs_mount::{Asked, Device, FileDevice, ask_info, ask_shrink, mount};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Whether this machine can mount, and has the programs.
fn is_able(programs: &[&str]) -> bool {
    let unchecked = "no program has used a mounted volume";
    has_fuse(unchecked) && programs.iter().all(|program| has_program(program, unchecked))
}

struct Volume {
    directory: tempfile::TempDir,
    at: PathBuf,
    unmounter: fuser::SessionUnmounter,
    served: Option<JoinHandle<()>>,
}

impl Drop for Volume {
    /// Before the directory is emptied: what is mounted in it would be, too.
    fn drop(&mut self) {
        let unmounted = self.unmounter.unmount();
        if let Some(served) = self.served.take().filter(|_| unmounted.is_ok()) {
            let _ = served.join();
        }
    }
}

impl Volume {
    fn image(directory: &Path) -> PathBuf {
        directory.join("volume")
    }

    /// A new volume of `bytes` bytes, mounted.
    fn new(bytes: u64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let device = FileDevice::open(&Self::image(directory.path()), Some(bytes), true).expect("a file");
        let format = Format { segment_blocks: 128, id: 1 };
        drop(FileSystem::format(device, format, Config::default(), 0).expect("a volume"));
        let (unmounter, served) = Self::serve(directory.path());
        Self { at: directory.path().join("mount"), directory, unmounter, served }
    }

    fn serve(directory: &Path) -> (fuser::SessionUnmounter, Option<JoinHandle<()>>) {
        let device = FileDevice::open(&Self::image(directory), None, true).expect("a file");
        let fs = FileSystem::mount(Box::new(device) as Device, Config::default()).expect("a volume");
        let at = directory.join("mount");
        std::fs::create_dir_all(&at).expect("a directory");
        let (ready, is_ready) = mpsc::channel();
        let served = thread::spawn(move || {
            mount(fs, &at, |unmounter| ready.send(unmounter).expect("somebody waits")).expect("a mount");
        });
        (is_ready.recv().expect("a mount"), Some(served))
    }

    /// Unmounts, checks, and mounts again.
    fn again(&mut self) {
        self.unmounter.unmount().expect("nobody is in there");
        if let Some(served) = self.served.take() {
            served.join().expect("the mount ends well");
        }
        let device = FileDevice::open(&Self::image(self.directory.path()), None, true).expect("a file");
        let report = FileSystem::mount(device, Config::default()).expect("a volume").check().expect("a check");
        assert!(report.is_clean(), "{:?}", report.problems);
        (self.unmounter, self.served) = Self::serve(self.directory.path());
    }

    /// Sends the logs through `mebibytes` MiB, so that later blocks lie higher up.
    fn age(&self, mebibytes: u64) {
        shell(&self.at, &format!("dd if=/dev/zero of=gone bs=1M count={mebibytes} 2>/dev/null; sync gone; rm gone"));
    }

    /// Shrinks after a while in which programs have written.
    fn shrink(&self, bytes: u64, method: Method) -> String {
        thread::sleep(Duration::from_millis(1500));
        ask_shrink(&self.at, Asked { bytes, method }).expect("a machine that can mount")
    }
}

/// Runs a shell script in a directory; returns its output. It must succeed.
fn shell(at: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(at).output().expect("a machine that can mount");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn copies_and_commits_are_whole_while_the_volume_shrinks() {
    if !is_able(&["cp", "diff", "git"]) {
        return;
    }
    let mut volume = Volume::new(256 * MIB);
    volume.age(225);
    // Of a copy: the sources may change meanwhile.
    let source = volume.directory.path().join("source");
    let pure = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pure");
    shell(volume.directory.path(), &format!("cp -r '{}' source", pure.display()));
    let script = format!(
        "for round in 1 2 3; do rm -rf copy; cp -r '{0}' copy; diff -r '{0}' copy; done
         git init -q repository; cd repository; git config user.email a@b; git config user.name n
         cp -r ../copy/cvfs .; git add .; git commit -qm one
         for n in 1 2 3 4 5; do echo $n >> cvfs/Cargo.toml; git commit -qam $n; done
         git gc -q; git fsck --strict",
        source.display()
    );
    thread::scope(|scope| {
        let work = scope.spawn(|| shell(&volume.at, &script));
        for (bytes, method) in
            [(230, Method::Remap), (200, Method::Relocate), (190, Method::Holes), (160, Method::Remap)]
        {
            println!("{}", volume.shrink(bytes * MIB, method));
        }
        work.join().unwrap();
    });
    println!("{}", ask_info(&volume.at).unwrap());
    volume.again();
    shell(
        &volume.at,
        &format!("diff -r '{}' copy; cd repository; git fsck --strict; git log | grep -c commit", source.display()),
    );
    volume.again();
}

#[test]
fn a_database_keeps_its_transactions_while_the_volume_shrinks() {
    if !is_able(&["sqlite3"]) {
        return;
    }
    let mut volume = Volume::new(192 * MIB);
    volume.age(160);
    shell(&volume.at, "sqlite3 bank.db 'create table account(id integer primary key, money int, note text)'");
    shell(
        &volume.at,
        "sqlite3 bank.db \"with recursive n(i) as (select 1 union all select i+1 from n where i < 20000)
         insert into account select i, 100, hex(randomblob(200)) from n\"",
    );
    let transfers = "for n in $(seq 1 60); do
           sqlite3 bank.db \"begin; update account set money = money - 1 where id % 7 = $((n % 7));
             update account set money = money + 1, note = hex(randomblob(200)) where id % 7 = $((n % 7)); commit\"
         done";
    thread::scope(|scope| {
        let work = scope.spawn(|| shell(&volume.at, transfers));
        for (bytes, method) in
            [(176, Method::Remap), (160, Method::Relocate), (144, Method::Remap), (128, Method::Relocate)]
        {
            println!("{}", volume.shrink(bytes * MIB, method));
        }
        work.join().unwrap();
    });
    volume.again();
    let told = shell(&volume.at, "sqlite3 bank.db 'pragma integrity_check; select sum(money), count(*) from account'");
    assert_eq!(told, "ok\n2000000|20000\n");
    volume.again();
}

#[test]
fn names_behave_as_programs_expect() {
    if !is_able(&[]) {
        return;
    }
    let mut volume = Volume::new(64 * MIB);
    let told = shell(
        &volume.at,
        "mkdir -p a/b; echo one > a/f; ln a/f a/g; ln -s ../f a/b/l; mv a/g a/b/h; chmod 640 a/f; touch -d @1000000000 a/f
         cat a/b/h; readlink a/b/l; stat -c '%h %a %s %Y' a/f; exec 3< a/f; rm a/f a/b/h; cat <&3; exec 3<&-
         truncate -s 1G sparse; stat -c '%s %b' sparse; rmdir a 2>/dev/null || echo full; rm -r a; ls
         touch -d '1960-05-05 12:00:00.25 UTC' old; stat -c %Y old; TZ=UTC stat -c %y old; rm old
         mkdir sg; chgrp 1000 sg; chmod 2775 sg; mkdir sg/d; : > sg/f; stat -c '%g %A' sg/d sg/f; rm -r sg
         mkdir many; for n in $(seq 1 2000); do : > many/$n; done; ls many | wc -l; rm -r many; ls -a",
    );
    let expect = "one\n../f\n2 640 4 1000000000\none\n1073741824 0\nfull\nsparse\n-304776000\n1960-05-05 12:00:00.250000000 +0000\n1000 drwxr-sr-x\n1000 -rw-r--r--\n2000\n.\n..\nsparse\n";
    assert_eq!(told, expect);
    volume.again();
}

#[test]
fn many_files_that_are_deleted_while_open_stop_no_others() {
    if !is_able(&[]) {
        return;
    }
    let mut volume = Volume::new(64 * MIB);
    let path = |name: &str| volume.at.join(name);
    for name in ["closed", "from", "to", "last"] {
        std::fs::write(path(name), name).expect("there is room");
    }
    let names: Vec<String> = (0..520).map(|number| number.to_string()).collect();
    let held: Vec<std::fs::File> =
        names.iter().map(|name| std::fs::File::create_new(path(name)).expect("there is room")).collect();
    let refused: Vec<i32> =
        names.iter().filter_map(|name| std::fs::remove_file(path(name)).err()?.raw_os_error()).collect();
    assert!(refused.len() <= 20 && refused.iter().all(|&error| error == 23), "{refused:?}");
    // These are open no more, or were never.
    std::fs::remove_file(path("closed")).expect("it is not open");
    std::fs::rename(path("from"), path("to")).expect("it is not open");
    assert_eq!(std::fs::read(path("to")).expect("it is there"), b"from");
    std::fs::create_dir(path("directory")).expect("there is room");
    std::fs::remove_dir(path("directory")).expect("it is empty");
    drop(held);
    names.iter().for_each(|name| drop(std::fs::remove_file(path(name))));
    let left: Vec<_> =
        std::fs::read_dir(&volume.at).expect("it is there").map(|entry| entry.expect("it is").file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    volume.again();
}

#[test]
fn a_name_that_is_too_long_is_refused_for_that() {
    if !is_able(&[]) {
        return;
    }
    let volume = Volume::new(64 * MIB);
    let error = |len: usize| std::fs::metadata(volume.at.join("n".repeat(len))).expect_err("it is not there");
    assert_eq!(error(255).kind(), std::io::ErrorKind::NotFound);
    assert_eq!(error(256).kind(), std::io::ErrorKind::InvalidFilename, "{}", error(256));
}
