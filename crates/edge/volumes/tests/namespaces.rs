//! Namespaces of targets whose blocks do not fit.

use flashyard_live::{NvmeTcp, Wake};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_units::VolumeId;
use flashyard_volumes::{OpenDrive, OpenError, Volumes, open};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const NQN: &str = "nqn.2026-01.test:large";

fn no_drive(_: &Path, _: Option<&Path>, _: u16, _: Wake) -> Result<OpenDrive, String> {
    Err("no drive is served".to_owned())
}

fn no_secret(_: &Path) -> Result<flashyard_nvmf::secret::Secret, String> {
    Err("there is none".to_owned())
}

#[test]
fn a_namespace_of_larger_blocks_is_refused_by_name_and_one_of_smaller_blocks_is_taken() {
    for (block_log2, fits) in [(13, false), (9, true)] {
        let text = "[[volume]]\nname = \"v\"\nback = { memory = \"1 MiB\" }\n";
        let Volumes { mut engine, .. } = open(text, Path::new(""), no_secret, no_drive).expect("it is right");
        let namespace = Namespace::new(1, 64, block_log2);
        let subsystems = vec![Subsystem::new(NQN, "FY0001", vec![namespace])];
        let config = TargetConfig { subsystems, ..TargetConfig::default() };
        let any = "127.0.0.1:0".parse().expect("an address");
        let front = NvmeTcp::new(&[any], config, vec![VolumeId::new(0)], 1).expect("it can be listened on");
        let address = front.addresses().next().expect("one was asked for");
        engine.fronts_mut().add(Box::new(front));
        let over = AtomicBool::new(false);
        let connect = || {
            let text = format!("[[volume]]\nname = \"v\"\nback = {{ nvme_tcp = \"{address}\", nqn = \"{NQN}\" }}\n");
            let opened = open(&text, Path::new(""), no_secret, no_drive).map(|volumes| volumes.names);
            over.store(true, Ordering::Relaxed);
            opened
        };
        let opened = std::thread::scope(|scope| {
            let client = scope.spawn(connect);
            engine.run(|_| over.load(Ordering::Relaxed)).expect("it serves");
            client.join().expect("no panic")
        });
        match opened {
            Ok(names) => assert!(fits && names == ["v"]),
            Err(OpenError::Namespace { source, .. }) => {
                assert!(!fits && source.to_string() == "namespace 1: its blocks do not divide 4096 bytes", "{source}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}
