//! Any bytes through every decoder of NVMe: what is decoded is encoded and decoded to the same again.

#![no_main]

use flashyard_nvme::admin::AdminCommand;
use flashyard_nvme::auth::Message;
use flashyard_nvme::fabrics::{ConnectData, FabricsCommand};
use flashyard_nvme::identify::{read_descriptors, read_list};
use flashyard_nvme::log::read_ana_log;
use flashyard_nvme::nvm::{DsmRange, NvmCommand};
use flashyard_nvme::reservation::{ReservationCommand, ReservationReport};
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::{Cqe, Sqe};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some(sqe) = Sqe::decode(input) {
        let id = sqe.command_id.get();
        if let Ok(command) = NvmCommand::decode(&sqe) {
            assert_eq!(NvmCommand::decode(&command.encode(id, sqe.nsid.get())), Ok(command));
        }
        if let Ok(command) = ReservationCommand::decode(&sqe) {
            assert_eq!(ReservationCommand::decode(&command.encode(id, sqe.nsid.get())), Ok(command));
        }
        if let Ok(command) = AdminCommand::decode(&sqe) {
            assert_eq!(AdminCommand::decode(&command.encode(id)), Ok(command));
        }
        if let Ok(command) = FabricsCommand::decode(&sqe) {
            assert_eq!(FabricsCommand::decode(&command.encode(id)), Ok(command));
        }
        if let Ok(sgl) = Sgl::decode(&sqe.data) {
            assert_eq!(Sgl::decode(&sgl.encode()), Ok(sgl));
        }
    }
    let _ = Cqe::decode(input).map(|cqe| cqe.status().name());
    if let Ok(message) = Message::decode(input) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        assert_eq!(Message::decode(&bytes), Ok(message));
    }
    if let Some(data) = ConnectData::decode(input) {
        let _ = (data.subsystem(), data.host());
    }
    read_descriptors(input);
    read_ana_log(input);
    read_list(input).count();
    DsmRange::decode_all(input).count();
    ReservationReport::decode(input);
});
