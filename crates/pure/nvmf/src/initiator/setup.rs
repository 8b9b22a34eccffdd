//! How a connection gets from its first byte to being ready.

use super::commands::{Data, Owner};
use super::connection::Connection;
use super::effects::{ConnectionError, Effects};
use super::stage::{NamespaceInfo, Setup};
use flashyard_nvme::admin::{AdminCommand, Identify, cns};
use flashyard_nvme::fabrics::{CONTROLLER_DYNAMIC, Connect, ConnectData, ConnectParameter, Connected, FabricsCommand};
use flashyard_nvme::feature::{Queues, id};
use flashyard_nvme::identify::{IdentifyController, IdentifyNamespace, read_list};
use flashyard_nvme::property::{Capabilities, Configuration, ControllerStatus, Property};
use flashyard_nvme::text::{DISCOVERY_NQN, unpadded};
use flashyard_nvme::{IDENTIFY_BYTES, Sqe, Status};
use zerocopy::{FromBytes, IntoBytes};

impl Connection {
    /// The connection is initialized: takes the queue.
    pub(super) fn begin_setup(&mut self, effects: &mut Effects) -> Result<(), ConnectionError> {
        let wanted = match self.queue_id {
            0 => self.config.controller_id.unwrap_or(CONTROLLER_DYNAMIC),
            _ => self.info.id,
        };
        let data = ConnectData::new(self.config.host_id, wanted, &self.config.subsystem_nqn, &self.config.host_nqn);
        let connect = FabricsCommand::Connect(Connect {
            format: 0,
            queue_id: self.queue_id,
            queue_size: self.queue_entries - 1,
            disable_flow_control: !self.config.has_flow_control,
            keep_alive_ms: if self.queue_id == 0 { self.config.keep_alive_ms } else { 0 },
        });
        let mut bytes = effects.output.take();
        bytes.extend_from_slice(data.as_bytes());
        // Connect comes before the size of capsules is known, and every controller takes its data in the capsule.
        let capsule_bytes = std::mem::replace(&mut self.capsule_bytes, ConnectData::BYTES as u32);
        let sent = self.ask(Setup::Connect, connect.encode(0), Data::ToController(bytes), effects);
        self.capsule_bytes = capsule_bytes;
        sent
    }

    pub(super) fn ask(
        &mut self,
        next: Setup,
        sqe: Sqe,
        data: Data,
        effects: &mut Effects,
    ) -> Result<(), ConnectionError> {
        self.setup = next;
        let full = ConnectionError::Setup { step: next.name(), status: Status::INVALID_QUEUE_SIZE };
        self.send(Owner::Setup, sqe, data, effects).map_err(|_| full)
    }

    /// A command of the setup is finished: what comes next.
    pub(super) fn setup_step(
        &mut self,
        status: Status,
        result: u64,
        data: Vec<u8>,
        effects: &mut Effects,
    ) -> Result<(), ConnectionError> {
        let step = self.setup.name();
        self.check_setup(status, result)?;
        let outcome = match self.setup {
            Setup::Connect => {
                let connected = Connected::decode(result);
                self.info.id = connected.controller_id;
                match connected.authentication_required {
                    true => self.authenticate(effects),
                    false => self.connected(effects),
                }
            }
            Setup::Authenticate => self.authentication_step(&data, effects),
            Setup::Capabilities => {
                let capabilities = Capabilities::decode(result);
                self.info.queue_entries_max = capabilities.queue_entries_max;
                let all_sets = capabilities.command_sets && self.config.all_command_sets;
                let command_set = if all_sets { Configuration::ALL_COMMAND_SETS } else { 0 };
                let offset = Property::Configuration.offset();
                let value = u64::from(Configuration::enabled(command_set).encode());
                let set = FabricsCommand::PropertySet { is_wide: false, offset, value };
                self.ask(Setup::Enable, set.encode(0), Data::None, effects)
            }
            Setup::Enable => self.read_status(effects),
            Setup::Status => {
                let answer = ControllerStatus::decode(result as u32);
                match (answer.ready, answer.fatal) {
                    (_, true) => Err(ConnectionError::Setup { step, status: Status::INTERNAL }),
                    (true, false) => self.identify(Setup::Controller, cns::CONTROLLER, 0, effects),
                    (false, false) => self.read_status(effects),
                }
            }
            Setup::Controller => self.identified(&data, effects),
            Setup::EventConfiguration if self.config.subsystem_nqn == DISCOVERY_NQN => self.ready(effects),
            Setup::EventConfiguration => {
                let count = u32::from(self.config.io_queues);
                let value = Queues { submission: count, completion: count }.encode();
                self.set_feature(Setup::Queues, id::QUEUES, value, effects)
            }
            Setup::Queues => {
                let granted = Queues::decode(result as u32).map_or(0, |queues| queues.submission);
                self.info.io_queues = granted.min(u32::from(self.config.io_queues)) as u16;
                self.identify(Setup::Namespaces, cns::NAMESPACES_ACTIVE, 0, effects)
            }
            Setup::Namespaces => {
                let found = |nsid| NamespaceInfo { nsid, ..NamespaceInfo::default() };
                self.info.namespaces = read_list(&data).map(found).collect();
                self.next_namespace(0, effects)
            }
            Setup::Namespace(place) => {
                self.note_namespace(place, &data);
                self.next_namespace(place + 1, effects)
            }
            Setup::Initialize | Setup::Ready => Ok(()),
        };
        effects.output.give(data);
        outcome
    }

    /// Whether the setup goes on after a command that ended so.
    fn check_setup(&self, status: Status, result: u64) -> Result<(), ConnectionError> {
        match self.setup {
            _ if status.is_success() => Ok(()),
            Setup::Connect => {
                let is_parameter = status.code() == Status::CONNECT_INVALID_PARAMETERS;
                let parameter = is_parameter.then(|| ConnectParameter::decode(result));
                Err(ConnectionError::Connect { status, parameter })
            }
            // A controller of discovery may lack what is not needed to read its log.
            Setup::EventConfiguration => Ok(()),
            setup => Err(ConnectionError::Setup { step: setup.name(), status }),
        }
    }

    /// The queue is ours, and the controller knows who we are.
    pub(super) fn connected(&mut self, effects: &mut Effects) -> Result<(), ConnectionError> {
        if self.queue_id > 0 {
            self.setup = Setup::Ready;
            return Ok(());
        }
        let get = FabricsCommand::PropertyGet { is_wide: true, offset: Property::Capabilities.offset() };
        self.ask(Setup::Capabilities, get.encode(0), Data::None, effects)
    }

    fn read_status(&mut self, effects: &mut Effects) -> Result<(), ConnectionError> {
        let get = FabricsCommand::PropertyGet { is_wide: false, offset: Property::Status.offset() };
        self.ask(Setup::Status, get.encode(0), Data::None, effects)
    }

    fn identify(&mut self, next: Setup, cns: u8, nsid: u32, effects: &mut Effects) -> Result<(), ConnectionError> {
        let identify = AdminCommand::Identify(Identify { cns, nsid, ..Identify::default() });
        self.ask(next, identify.encode(0), Data::ToHost(IDENTIFY_BYTES as u32), effects)
    }

    fn set_feature(
        &mut self,
        next: Setup,
        feature: u8,
        value: u32,
        effects: &mut Effects,
    ) -> Result<(), ConnectionError> {
        let set = AdminCommand::SetFeatures { feature, save: false, values: [value, 0, 0, 0, 0] };
        self.ask(next, set.encode(0), Data::None, effects)
    }

    fn identified(&mut self, data: &[u8], effects: &mut Effects) -> Result<(), ConnectionError> {
        let Ok(it) = IdentifyController::ref_from_bytes(data) else {
            return Err(ConnectionError::Setup { step: self.setup.name(), status: Status::DATA_TRANSFER_ERROR });
        };
        self.info.serial = unpadded(&it.serial);
        self.info.model = unpadded(&it.model);
        self.info.remaps = it.announces_remap();
        self.info.commands_max = it.commands_max.get();
        let pages = u32::from(it.data_pages_max_log2);
        self.info.data_bytes_max = (pages > 0).then(|| 4096_u32.checked_shl(pages).unwrap_or(u32::MAX));
        let capsule_bytes = it.command_capsule_units.get().saturating_mul(16);
        self.info.capsule_data_bytes = capsule_bytes.saturating_sub(Sqe::BYTES as u32);
        let events = it.async_events.get();
        self.set_feature(Setup::EventConfiguration, id::ASYNC_EVENTS, events, effects)
    }

    fn note_namespace(&mut self, place: usize, data: &[u8]) {
        if let (Ok(namespace), Some(info)) =
            (IdentifyNamespace::ref_from_bytes(data), self.info.namespaces.get_mut(place))
        {
            info.blocks = namespace.size_blocks.get();
            info.block_bytes = namespace.block_bytes().unwrap_or(0);
            info.metadata_bytes = namespace.format_in_use().metadata_bytes.get();
        }
    }

    fn next_namespace(&mut self, place: usize, effects: &mut Effects) -> Result<(), ConnectionError> {
        match self.info.namespaces.get(place) {
            Some(namespace) => self.identify(Setup::Namespace(place), cns::NAMESPACE, namespace.nsid, effects),
            None => self.ready(effects),
        }
    }

    fn ready(&mut self, effects: &mut Effects) -> Result<(), ConnectionError> {
        self.setup = Setup::Ready;
        self.request_event(effects);
        Ok(())
    }
}
