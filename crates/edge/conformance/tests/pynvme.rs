//! A host that is not Linux's: that of SPDK, as the Python module pynvme carries it, on an enclosure that we serve.
//!
//! Needs Python 3.8 with pip and a package index, a C compiler and 256 huge pages with a file system over them. It
//! takes a module from that index, so that `cargo test` leaves it out: `make test-spdk` runs it.

use flashyard_conformance::skip;
use flashyard_live::{Engine, NvmeTcp, SetUp, Shape, Tempo, set_up};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_scenario::{NoFiles, ScenarioError, resolve, serve_world, shapes};
use flashyard_served::Session;
use flashyard_units::VolumeId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

/// The last version with a build of its own inside.
const VERSION: &str = "2.3.2";
const HUGE_PAGES: u32 = 256;

/// Discovers, connects, uses the commands that the module has a word for, an unknown one, and a load that checks what
/// it reads.
const SCRIPT: &str = r#"
import sys, nvme

def note(name, value):
    print('=', name, value, flush=True)

if __name__ == '__main__':
    c = nvme.Controller(nvme.Pcie('127.0.0.1', int(sys.argv[1])))
    n = nvme.Namespace(c, 1)
    q = nvme.Qpair(c, 64)
    b = nvme.Buffer(4096)
    note('model', c.id_data(63, 24, str).strip())
    n.write(q, b, 8, 1).waitdone()
    n.read(q, b, 8, 1).waitdone()
    n.flush(q).waitdone()
    n.write_zeroes(q, 16, 1).waitdone()
    c.getlogpage(2, b, 512).waitdone()
    note('kelvin', b.data(2, 1))
    statuses = []
    def seen(cdw0, status):  # a lambda in the call would not live long enough
        statuses.append(status >> 1 & 0x7ff)
    c.send_cmd(0xC1, nsid=1, cb=seen).waitdone()
    note('unknown', statuses)
    # The module marks each block that it writes, and compares what it reads. Its own load knows port 4420 only.
    buffers = [nvme.Buffer(4096) for _ in range(16)]
    for turn in range(100):
        blocks = [(turn * 37 + place * 61) % 2000 for place in range(16)]
        for block, buffer in zip(blocks, buffers):
            n.write(q, buffer, block, 1)
        q.waitdone(16)
        for block, buffer in zip(blocks, buffers):
            n.read(q, buffer, block, 1)
        q.waitdone(16)
    note('turns', turn + 1)
"#;

/// The module asserts four processors, and takes its mask of cores from the next call of the same function.
const PROCESSORS: &str = "static int calls; int get_nprocs(void) { return calls++ ? 2 : 4; } \
     int get_nprocs_conf(void) { return 2; }";

fn run(command: &mut Command) -> Result<Output, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{shown}: {}\n{out}{error}", output.status))
}

/// A Python that can load the module.
fn python() -> Result<PathBuf, String> {
    let mut candidates = vec![PathBuf::from("python3.8")];
    if let Some(home) = std::env::var_os("HOME")
        && let Ok(versions) = std::fs::read_dir(Path::new(&home).join(".pyenv/versions"))
    {
        let of_3_8 = versions.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("3.8."));
        candidates.extend(of_3_8.map(|entry| entry.path().join("bin/python")));
    }
    let works = |path: &PathBuf| run(Command::new(path).args(["-c", "import venv, pip"])).is_ok();
    candidates.into_iter().find(works).ok_or("there is no Python 3.8 with pip".to_owned())
}

/// Fetches the module into `home`, and returns the Python that runs it and the directory to run it in.
fn prepare(home: &Path) -> Result<(PathBuf, PathBuf), String> {
    let pages = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap_or_default();
    if pages.trim().parse::<u32>().unwrap_or(0) < HUGE_PAGES {
        return Err(format!("fewer than {HUGE_PAGES} huge pages: sysctl -w vm.nr_hugepages={HUGE_PAGES}"));
    }
    huge_pages().ok_or("no file system of huge pages: mount -t hugetlbfs none /dev/hugepages")?;
    std::fs::create_dir_all(home).map_err(|error| error.to_string())?;
    let python = home.join("venv/bin/python");
    let module = home.join(format!("pynvme-{VERSION}"));
    if !python.exists() {
        run(Command::new(self::python()?).args(["-m", "venv"]).arg(home.join("venv")))?;
    }
    if !module.exists() {
        // Not installed: its setup wants to install packages of the system. What it needs is built in.
        let wanted = format!("pynvme=={VERSION}");
        let get = ["-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--quiet", "--dest", ".", &wanted];
        run(Command::new(&python).args(get).current_dir(home))?;
        run(Command::new("tar").arg("-xzf").arg(format!("pynvme-{VERSION}.tar.gz")).current_dir(home))?;
    }
    std::fs::write(module.join("processors.c"), PROCESSORS).map_err(|error| error.to_string())?;
    std::fs::write(module.join("script.py"), SCRIPT).map_err(|error| error.to_string())?;
    run(Command::new("cc").args(["-shared", "-fPIC", "-o", "processors.so", "processors.c"]).current_dir(&module))?;
    Ok((python, module))
}

/// Serves one small drive over NVMe/TCP while `client` works with it.
fn serve<R: Send>(client: impl FnOnce(SocketAddr) -> R + Send) -> R {
    let text = include_str!("../../../../scenarios/faults/scenario.toml");
    let scenario = resolve(text, "faults", &[], &NoFiles).expect("the scenario is whole").scenario;
    let shapes = shapes(&scenario).expect("its drives can be built");
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let set_up: Result<SetUp, flashyard_live::SetUpError<ScenarioError>> =
        set_up(None, &shapes, |contents| serve_world(&scenario, &NoFiles, contents));
    let SetUp { world, media, .. } = set_up.expect("its enclosure can serve");
    let namespace = Namespace::new(1, u64::from(world.slots(0)), 12);
    let config = TargetConfig {
        subsystems: vec![Subsystem::new("nqn.2026-11.io.flashyard:drive-0", "FY0000", vec![namespace])],
        ..TargetConfig::default()
    };
    let any = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, vec![VolumeId::new(0)], 3000).expect("the loopback can be listened on");
    let address = front.addresses().next().expect("one was asked for");
    let mut engine =
        Engine::new(Session::new(world, None), media, &[VolumeId::new(0)], Tempo::Off).expect("there is a poll");
    engine.add_front(Box::new(front));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let result = client(address);
            done.store(true, Ordering::Relaxed);
            result
        });
        engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
        client.join().expect("the client ends")
    })
}

/// Where huge pages are files.
fn huge_pages() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let is_it = |line: &&str| line.split(' ').nth(2) == Some("hugetlbfs");
    mounts.lines().find(is_it).and_then(|line| line.split(' ').nth(1)).map(PathBuf::from)
}

/// Files of huge pages that the module leaves behind.
fn maps() -> Vec<PathBuf> {
    let directory = huge_pages().and_then(|path| std::fs::read_dir(path).ok());
    let entries = directory.into_iter().flatten().flatten();
    let name_fits = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("spdk"));
    entries.map(|entry| entry.path()).filter(name_fits).collect()
}

#[test]
fn the_host_of_spdk_discovers_connects_and_reads_what_it_wrote() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pynvme");
    let (python, module) = match prepare(&home) {
        Ok(prepared) => prepared,
        Err(reason) => return skip("pynvme", &reason, "no host but Linux's and our own has used our target"),
    };
    let before = maps();
    let outcome = serve(|address| {
        let mut client = Command::new("timeout");
        client.args(["--signal=KILL", "90"]).arg(python).arg("script.py").arg(address.port().to_string());
        run(client.env("LD_PRELOAD", module.join("processors.so")).current_dir(&module))
    });
    for left in maps().into_iter().filter(|map| !before.contains(map)) {
        // A file that cannot be removed costs memory, not the result.
        let _ = std::fs::remove_file(left);
    }
    let output = outcome.unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| line.strip_prefix("= ")?.split_once(' '));
    let seen: BTreeMap<&str, &str> = lines.collect();
    println!("{seen:?}");
    assert!(seen["model"].contains("flashyard"), "{text}");
    // Generic status 1: invalid command opcode.
    assert_eq!((seen["kelvin"], seen["unknown"], seen["turns"]), ("298", "[1]", "100"), "{text}");
}
