//! tshark's reading of a synthetic NVMe/TCP session: every PDU named, none malformed, every digest right.

mod capture;

use capture::Capture;
use flashyard_conformance::has_program;
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, GetLogPage};
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvme::tcp::{
    Alignment, Digests, Event, FatalStatus, Framer, Role, initialize_request, initialize_response, termination,
};
use flashyard_nvmf::Output;
use flashyard_nvmf::initiator::{self, Connection, Data, InitiatorConfig};
use flashyard_nvmf::target::{self, Limits, Namespace, Port, Security, Session, Subsystem, Target, TargetConfig};
use flashyard_units::SimTime;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::Command;

const NQN: &str = "nqn.2026-01.test:jbof";

/// Both ends of one connection, and the traffic between them.
struct Link {
    host: Connection,
    host_effects: initiator::Effects,
    session: Session,
    effects: target::Effects,
    /// The host's port, which names the connection in the capture.
    port: u16,
    counts: Counts,
    framers: [Framer; 2],
}

/// Number of PDUs of each type.
type Counts = BTreeMap<u8, usize>;

fn drain(output: &mut Output) -> Vec<u8> {
    let bytes: Vec<u8> = output.slices().flatten().copied().collect();
    output.advance(bytes.len());
    bytes
}

impl Link {
    fn new(target: &mut Target, admin: Option<&Connection>, config: &InitiatorConfig, port: u16) -> Self {
        let mut host_effects = initiator::Effects::default();
        let host = match admin {
            None => Connection::admin(config.clone(), SimTime::ZERO, &mut host_effects),
            Some(admin) => Connection::io(admin, 1, SimTime::ZERO, &mut host_effects),
        };
        Self {
            host,
            host_effects,
            session: Session::new(target, 1),
            effects: target::Effects::default(),
            port,
            counts: Counts::new(),
            framers: [Framer::new(Role::Controller, 1 << 20), Framer::new(Role::Host, 1 << 20)],
        }
    }

    /// Moves bytes until nothing moves, and captures them.
    fn settle(&mut self, target: &mut Target, capture: &mut Capture, digests: Digests) {
        loop {
            let to_target = drain(&mut self.host_effects.output);
            self.note(capture, true, &to_target, digests);
            self.session.receive(target, SimTime::ZERO, &to_target, &mut self.effects);
            for mut command in std::mem::take(&mut self.effects.commands) {
                if matches!(command.operation, NvmCommand::Read { .. }) {
                    command.payload.resize(command.data_bytes as usize, 0x5A);
                }
                self.session.complete(target, command.tag, Status::SUCCESS, command.payload, &mut self.effects);
            }
            let to_host = drain(&mut self.effects.output);
            self.note(capture, false, &to_host, digests);
            self.host.receive(&to_host, &mut self.host_effects);
            if to_target.is_empty() && to_host.is_empty() {
                break;
            }
        }
    }

    /// Captures `bytes` and counts their PDUs.
    fn note(&mut self, capture: &mut Capture, from_host: bool, bytes: &[u8], digests: Digests) {
        capture.segment(self.port, from_host, bytes);
        let framer = &mut self.framers[usize::from(!from_host)];
        let mut input = bytes;
        while let Some(event) = framer.next(&mut input).expect("our own bytes are right") {
            let kind = match event {
                Event::Initialize(_) => {
                    framer.agree(digests, Alignment::default());
                    u8::from(!from_host)
                }
                Event::Terminated(_) => 2 + u8::from(!from_host),
                Event::Command { .. } => 4,
                Event::Response(_) => 5,
                Event::DataBegins { .. } => 6 + u8::from(!from_host),
                Event::ReadyToTransfer(_) => 9,
                Event::Data(_) | Event::End { .. } => continue,
            };
            *self.counts.entry(kind).or_default() += 1;
        }
    }
}

/// A session with every kind of PDU but terminations: the capture and its counts.
fn session(digests: Digests, has_flow_control: bool) -> (Capture, Counts) {
    let config = TargetConfig {
        ports: vec![Port {
            id: 1,
            address: Ipv4Addr::new(192, 0, 2, 1).into(),
            service: 4420,
            security: Security::None,
        }],
        subsystems: vec![Subsystem::new(NQN, "0001", vec![Namespace::new(1, 4096, 12)])],
        // Small capsules and transfers, so that R2Ts are needed and several.
        limits: Limits {
            capsule_data_bytes: 8192,
            transfer_bytes: 32_768,
            data_pdu_bytes: 16_384,
            ..Limits::default()
        },
        entropy: [0; 32],
    };
    let mut target = Target::new(config).expect("the configuration is right");
    let mut wanted = InitiatorConfig::new("nqn.2026-01.test:host", NQN);
    wanted.digests = digests;
    wanted.has_flow_control = has_flow_control;
    let mut capture = Capture::new();
    let mut admin = Link::new(&mut target, None, &wanted, 40_000);
    admin.settle(&mut target, &mut capture, digests);
    assert!(admin.host.is_ready());
    for (page, len_bytes) in [(0x02, 512), (0x05, 4096), (0x0C, 64), (0x03, 512)] {
        let get = GetLogPage { page, len_bytes, ..GetLogPage::default() };
        let sqe = AdminCommand::GetLogPage(get).encode(0);
        let data = Data::ToHost(len_bytes as u32);
        admin.host.submit_entry(1, sqe, data, &mut admin.host_effects).expect("the queue has room");
        admin.settle(&mut target, &mut capture, digests);
    }
    let mut io = Link::new(&mut target, Some(&admin.host), &wanted, 40_001);
    io.settle(&mut target, &mut capture, digests);
    assert!(io.host.is_ready());
    let range = |blocks| BlockRange { lba: 8, blocks };
    let trim =
        NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
    let work = [
        (NvmCommand::Write { range: range(1), fua: true }, vec![1; 4096], 0),
        (NvmCommand::Write { range: range(20), fua: false }, vec![2; 81_920], 0),
        (NvmCommand::Read { range: range(1), fua: false }, Vec::new(), 4096),
        (NvmCommand::Read { range: range(16), fua: false }, Vec::new(), 65_536),
        (NvmCommand::Flush, Vec::new(), 0),
        (NvmCommand::WriteZeroes { range: range(4), deallocate: true, fua: false }, Vec::new(), 0),
        (trim, vec![0; DsmRange::BYTES], 0),
        (NvmCommand::Compare { range: range(1), fua: false }, vec![1; 4096], 0),
    ];
    for (token, (operation, data, len)) in (0..).zip(work) {
        io.host.submit(token, 1, operation, data, len, &mut io.host_effects).expect("the queue has room");
        io.settle(&mut target, &mut capture, digests);
    }
    assert_eq!(io.host_effects.completions.len(), 8);
    for (kind, count) in io.counts {
        *admin.counts.entry(kind).or_default() += count;
    }
    (capture, admin.counts)
}

/// Lines of tshark's fields for the capture; `None` where there is no tshark.
fn dissect(capture: &Capture) -> Option<Vec<Vec<String>>> {
    if !has_program("tshark", "only we have looked at our NVMe/TCP") {
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory for the capture");
    let path = directory.path().join("session.pcap");
    std::fs::write(&path, capture.bytes()).expect("the capture is written");
    let fields = [
        "nvme-tcp.type",
        "nvme-tcp.hdgst.status",
        "nvme-tcp.ddgst.status",
        "_ws.malformed",
        "_ws.expert.message",
        "_ws.col.Info",
    ];
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-o", "nvme-tcp.check_hdgst:TRUE", "-o", "nvme-tcp.check_ddgst:TRUE", "-T", "fields"])
        .args(["-E", "separator=;", "-E", "aggregator=,"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark starts");
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect())
}

fn check(digests: Digests, has_flow_control: bool) {
    let (capture, counts) = session(digests, has_flow_control);
    let Some(lines) = dissect(&capture) else { return };
    let mut seen = Counts::new();
    let (mut header_digests, mut data_digests) = (0, 0);
    for line in &lines {
        assert!(line[3].is_empty(), "malformed: {line:?}");
        for kind in line[0].split(',').filter(|kind| !kind.is_empty()) {
            *seen.entry(kind.parse().expect("a type is a number")).or_default() += 1;
        }
        for (field, count) in [(1, &mut header_digests), (2, &mut data_digests)] {
            for status in line[field].split(',').filter(|status| !status.is_empty()) {
                assert_eq!(status, "1", "a digest that tshark finds wrong: {line:?}");
                *count += 1;
            }
        }
    }
    assert_eq!(seen, counts);
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [0, 1, 4, 5, 6, 7, 9]);
    let with_digest: usize = counts.iter().filter(|(kind, _)| **kind >= 4).map(|(_, count)| count).sum();
    assert_eq!(header_digests, if digests.header { with_digest } else { 0 });
    assert_eq!(data_digests > 0, digests.data);
    let all = lines.iter().map(|line| line[5].as_str()).collect::<Vec<_>>().join("\n");
    for name in [
        "Initialize Connection Request",
        "NVMeOF Connect",
        "NVMeOF CQE for Connect",
        "NVMe Identify Controller",
        "NVMe Write",
        "Ready To Transfer",
        "NVMe Read",
        "NVMe Flush",
        "NVMe Compare",
        "NVMe Write Zero",
    ] {
        assert!(all.contains(name), "tshark names no `{name}` in\n{all}");
    }
}

#[test]
fn tshark_understands_a_session_without_digests() {
    check(Digests::default(), true);
}

#[test]
fn tshark_verifies_the_digests_of_a_session() {
    check(Digests { header: true, data: true }, true);
}

#[test]
fn tshark_understands_completions_that_are_left_out() {
    check(Digests { header: true, data: false }, false);
}

#[test]
fn tshark_understands_how_either_side_gives_up() {
    let mut capture = Capture::new();
    for (port, from_host) in [(40_000, true), (40_001, false)] {
        let (mut request, mut response, mut end) = (Vec::new(), Vec::new(), Vec::new());
        initialize_request(&mut request, Alignment::default(), Digests::default(), 1);
        initialize_response(&mut response, Alignment::default(), Digests::default(), 8192);
        termination(&mut end, from_host, FatalStatus::InvalidHeaderField, 2, &[4, 0, 71, 0, 72, 0, 0, 0]);
        capture.segment(port, true, &request);
        capture.segment(port, false, &response);
        capture.segment(port, from_host, &end);
    }
    let Some(lines) = dissect(&capture) else { return };
    assert!(lines.iter().all(|line| line[3].is_empty()), "malformed: {lines:?}");
    let kinds: Vec<&str> = lines.iter().map(|line| line[0].as_str()).filter(|kind| !kind.is_empty()).collect();
    assert_eq!(kinds, ["0", "1", "2", "0", "1", "3"]);
}
