//! Figures of a drive that serves, as the operator and the dashboard read them.

mod hosted;
mod small;

use flashyard_live::{Host, Reader, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use hosted::NQN;
use small::scenario_with;
use std::time::Duration;

const BLOCK: usize = 4096;

fn carried_out(host: &mut Host, command: NvmCommand, data: Vec<u8>, data_bytes: u32) {
    let done = host.command(1, command, data, data_bytes).expect("an answer");
    assert_eq!(done.status, Status::SUCCESS);
}

#[test]
fn each_reader_of_the_figures_has_an_interval_of_its_own() {
    let scenario = scenario_with(&["drive.filled=0"]);
    hosted::serve_zoned(&scenario, None, Tempo::Off, None, |address, handle| {
        let config = InitiatorConfig::new("nqn.2026-11.org.example:1", NQN);
        let mut host = Host::connect(address, config, Duration::from_secs(30)).expect("the target lets everybody in");
        let gauges = |reader| {
            let gauges = handle.call(move |engine| engine.gauges(reader)).expect("it serves");
            (gauges.drives[0].clone(), gauges.span)
        };
        let range = |lba| BlockRange { lba, blocks: 1 };
        for lba in 0..6 {
            carried_out(&mut host, NvmCommand::Write { range: range(lba), fua: false }, vec![1; BLOCK], 0);
            gauges(Reader::Dashboard);
        }
        carried_out(&mut host, NvmCommand::Read { range: range(0), fua: false }, Vec::new(), BLOCK as u32);
        carried_out(&mut host, NvmCommand::Flush, Vec::new(), 0);
        let (operator, whole) = gauges(Reader::Operator);
        let (dashboard, part) = gauges(Reader::Dashboard);
        assert_eq!((operator.write_bytes, dashboard.write_bytes), (6 * BLOCK as u64, 0));
        assert_eq!((operator.read_bytes, dashboard.read_bytes), (BLOCK as u64, BLOCK as u64));
        assert!(part < whole, "{part:?} {whole:?}");
        // Latency is that of reads and writes, as many as the health log counts.
        assert_eq!((operator.latency.count(), dashboard.latency.count()), (7, 1));
        assert_eq!((operator.health.reads, operator.health.writes), (1, 6));
        let (operator, _) = gauges(Reader::Operator);
        assert_eq!(operator.ios, 0);
    });
}
