//! One queue of a host, as a machine: commands and bytes in, bytes and completions out.

use super::commands::{Commands, Completion, Data, Full, Owner, Pending, Token};
use super::config::InitiatorConfig;
use super::effects::{ConnectionError, Effects};
use super::stage::{ControllerInfo, Setup, Step};
use flashyard_nvme::admin::AdminCommand;
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::nvm::{Direction, NvmCommand};
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::tcp::{
    ADMIN_CAPSULE_DATA_BYTES, Alignment, DataDigest, DataHeader, Digests, Event, FatalError, FatalStatus, Framer,
    Initialize, ReadyToTransfer, Role, capsule_command, data_to_controller, initialize_request, termination,
};
use flashyard_nvme::{Cqe, Sqe, Status};
use flashyard_units::{SimSpan, SimTime};
use zerocopy::little_endian::{U16, U32};

/// Data of one PDU at most: far above what any controller sends at once.
const DATA_BYTES_MAX: u32 = 64 << 20;

/// Entries of an admin queue: every controller over fabrics has as many. Source: NVM Express Base 2.0, figure 265, ASQSZ.
const ADMIN_ENTRIES: u16 = 32;

/// Entries of queue `queue_id`: as many as are wanted, no more than the controller has.
fn queue_entries(config: &InitiatorConfig, queue_id: u16, info: &ControllerInfo) -> u16 {
    let commands_max = if info.commands_max == 0 { u16::MAX } else { info.commands_max };
    let most = match queue_id {
        0 => ADMIN_ENTRIES,
        _ => u16::try_from(info.queue_entries_max).unwrap_or(u16::MAX).min(commands_max),
    };
    config.queue_entries.min(most).clamp(2, 4096)
}

/// One connection of a host: its admin queue or an I/O queue.
#[derive(Debug)]
pub struct Connection {
    pub(super) config: InitiatorConfig,
    pub(super) queue_id: u16,
    framer: Framer,
    digests: Digests,
    /// Alignment of data that the controller wants.
    alignment: Alignment,
    /// Most data of an H2CData.
    data_pdu_bytes: u32,
    /// Most data of a capsule.
    pub(super) capsule_bytes: u32,
    pub(super) queue_entries: u16,
    pub(super) commands: Commands,
    pub(super) setup: Setup,
    /// Where an authentication is.
    pub(super) step: Step,
    pub(super) info: ControllerInfo,
    is_closed: bool,
    /// The command that the data of the current PDU belongs to.
    sink: Option<(u16, bool)>,
    /// When the latest Keep Alive or other command was sent.
    sent: SimTime,
}

impl Connection {
    /// The admin queue of a new controller. Sends the first bytes.
    pub fn admin(config: InitiatorConfig, now: SimTime, effects: &mut Effects) -> Self {
        Self::new(config, 0, ControllerInfo::default(), ADMIN_CAPSULE_DATA_BYTES, now, effects)
    }

    /// I/O queue `queue_id`, from one, of the controller that `admin` is connected to. Sends the first bytes.
    pub fn io(admin: &Self, queue_id: u16, now: SimTime, effects: &mut Effects) -> Self {
        let capsule_bytes = admin.info.capsule_data_bytes;
        Self::new(admin.config.clone(), queue_id, admin.info.clone(), capsule_bytes, now, effects)
    }

    fn new(
        config: InitiatorConfig,
        queue_id: u16,
        info: ControllerInfo,
        capsule_bytes: u32,
        now: SimTime,
        effects: &mut Effects,
    ) -> Self {
        let outstanding = config.transfers_outstanding;
        effects.output.header(|out| initialize_request(out, Alignment::default(), config.digests, outstanding));
        let queue_entries = queue_entries(&config, queue_id, &info);
        Self {
            config,
            queue_id,
            framer: Framer::new(Role::Host, DATA_BYTES_MAX),
            digests: Digests::default(),
            alignment: Alignment::default(),
            data_pdu_bytes: 0,
            capsule_bytes,
            queue_entries,
            // A queue of n entries is full with n - 1 commands.
            commands: Commands::new(queue_entries - 1),
            setup: Setup::Initialize,
            step: Step::Idle,
            info,
            is_closed: false,
            sink: None,
            sent: now,
        }
    }

    /// Whether commands may be submitted.
    pub fn is_ready(&self) -> bool {
        self.setup == Setup::Ready && !self.is_closed
    }

    /// Properties of the controller that the setup found; complete once the admin connection is ready.
    pub fn controller(&self) -> &ControllerInfo {
        &self.info
    }

    /// Commands that the queue holds at most.
    pub fn capacity(&self) -> usize {
        usize::from(self.queue_entries - 1)
    }

    /// Commands that are not finished.
    pub fn outstanding(&self) -> usize {
        self.commands.len()
    }

    /// Sends a command of the NVM command set for namespace `nsid`.
    ///
    /// `data` goes to the controller for commands that have such data; the length of data to the host is
    /// `data_bytes`. Errors: the queue is full, and `data` is dropped.
    pub fn submit(
        &mut self,
        token: Token,
        nsid: u32,
        operation: NvmCommand,
        data: Vec<u8>,
        data_bytes: u32,
        effects: &mut Effects,
    ) -> Result<(), Full> {
        let data = match operation.direction() {
            Direction::ToController => Data::ToController(data),
            Direction::ToHost => Data::ToHost(data_bytes),
            Direction::None => Data::None,
        };
        self.submit_entry(token, operation.encode(0, nsid), data, effects)
    }

    /// Sends any command; identifier and data pointer of `sqe` are filled in. Errors: the queue is full.
    pub fn submit_entry(&mut self, token: Token, sqe: Sqe, data: Data, effects: &mut Effects) -> Result<(), Full> {
        if !self.is_ready() {
            return Err(Full);
        }
        self.send(Owner::Caller(token), sqe, data, effects)
    }

    pub(super) fn send(&mut self, owner: Owner, mut sqe: Sqe, data: Data, effects: &mut Effects) -> Result<(), Full> {
        let (sgl, payload, expected) = match data {
            Data::None => (Sgl::None, Vec::new(), 0),
            Data::ToHost(len) => (Sgl::Transport { len }, effects.output.take(), len),
            Data::ToController(payload) => {
                let len = payload.len() as u32;
                let is_inside = len <= self.capsule_bytes;
                (if is_inside { Sgl::InCapsule { offset: 0, len } } else { Sgl::Transport { len } }, payload, 0)
            }
        };
        sqe.data = sgl.encode();
        let (inside, kept) = match sgl {
            Sgl::InCapsule { .. } => (payload, Vec::new()),
            _ => (Vec::new(), payload),
        };
        self.commands.insert(&mut sqe, Pending { owner, data: kept, expected, is_damaged: false })?;
        let len = inside.len();
        effects.output.header(|out| capsule_command(out, &sqe, len, self.digests, self.alignment));
        self.put_data(inside, effects);
        Ok(())
    }

    /// When [`Connection::expire`] has to be called next; `None` without a keep-alive timeout.
    pub fn deadline(&self) -> Option<SimTime> {
        let period = SimSpan::from_ms(u64::from(self.config.keep_alive_ms)) / 2;
        (self.queue_id == 0 && self.is_ready() && period > SimSpan::ZERO).then(|| self.sent.saturating_add(period))
    }

    /// Sends a Keep Alive if it is time.
    pub fn expire(&mut self, now: SimTime, effects: &mut Effects) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.sent = now;
            // A full queue keeps the controller alive by itself.
            let _ = self.send(Owner::KeepAlive, AdminCommand::KeepAlive.encode(0), Data::None, effects);
        }
    }

    /// Takes `bytes` that arrived.
    ///
    /// A controller that breaks the protocol gets a termination, and `effects.failure` is set.
    pub fn receive(&mut self, bytes: &[u8], effects: &mut Effects) {
        let mut input = bytes;
        while !self.is_closed {
            let outcome = match self.framer.next(&mut input) {
                Ok(None) => break,
                Ok(Some(event)) => self.on_event(event, effects),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = outcome {
                self.fail(error, effects);
            }
        }
    }

    /// Ends the connection; commands that are not finished never will be.
    pub(super) fn fail(&mut self, error: ConnectionError, effects: &mut Effects) {
        self.is_closed = true;
        if let ConnectionError::ProtocolViolated(violation) = &error {
            let header = self.framer.latest_header();
            effects.output.header(|out| termination(out, true, violation.status, violation.information, header));
        }
        effects.failure = Some(error);
    }

    fn on_event(&mut self, event: Event<'_>, effects: &mut Effects) -> Result<(), ConnectionError> {
        let is_initialized = self.setup != Setup::Initialize;
        match event {
            Event::Initialize(response) if !is_initialized => self.initialized(&response, effects),
            Event::Terminated(body) => {
                Err(ConnectionError::ControllerTerminated(FatalStatus::from_number(body.status.get())))
            }
            Event::Response(cqe) if is_initialized => self.complete(&cqe, effects),
            Event::DataBegins { header, success, .. } if is_initialized => Ok(self.on_data_header(&header, success)?),
            Event::Data(data) => {
                if let Some((id, _)) = self.sink
                    && let Some(pending) = self.commands.get_mut(id)
                {
                    pending.data.extend_from_slice(data);
                }
                Ok(())
            }
            Event::End { is_intact } => self.on_data_end(is_intact, effects),
            Event::ReadyToTransfer(ready) if is_initialized => Ok(self.on_ready(&ready, effects)?),
            _ => Err(FatalError::SEQUENCE.into()),
        }
    }

    fn initialized(&mut self, response: &Initialize, effects: &mut Effects) -> Result<(), ConnectionError> {
        if response.version != U16::ZERO {
            return Err(FatalError { status: FatalStatus::UnsupportedParameter, information: 8 }.into());
        }
        self.alignment = Alignment::from_field(response.alignment).ok_or(FatalError::field(10))?;
        self.data_pdu_bytes = response.limit.get();
        if self.data_pdu_bytes < 4096 {
            return Err(FatalError::field(12).into());
        }
        self.digests = Digests::from_byte(response.digests);
        self.framer.agree(self.digests, Alignment::default());
        self.begin_setup(effects)
    }

    fn on_data_header(&mut self, header: &DataHeader, success: bool) -> Result<(), FatalError> {
        let id = header.command_id.get();
        let pending = self.commands.get_mut(id).ok_or(FatalError::field(8))?;
        if header.offset.get() as usize != pending.data.len() {
            return Err(FatalError { status: FatalStatus::DataOutOfRange, information: 12 });
        }
        let end = header.offset.get().checked_add(header.len.get());
        if end.is_none_or(|end| end > pending.expected) {
            return Err(FatalError { status: FatalStatus::DataOutOfRange, information: 16 });
        }
        pending.data.reserve(pending.expected as usize - pending.data.len());
        self.sink = Some((id, success));
        Ok(())
    }

    fn on_data_end(&mut self, is_intact: bool, effects: &mut Effects) -> Result<(), ConnectionError> {
        let Some((id, success)) = self.sink.take() else { return Ok(()) };
        if let Some(pending) = self.commands.get_mut(id) {
            pending.is_damaged |= !is_intact;
        }
        match success {
            true => self.complete(&Cqe::new(id, Status::SUCCESS, 0, 0), effects),
            false => Ok(()),
        }
    }

    /// Sends the data that the controller is ready for.
    fn on_ready(&mut self, ready: &ReadyToTransfer, effects: &mut Effects) -> Result<(), FatalError> {
        let pending = self.commands.get_mut(ready.command_id.get()).ok_or(FatalError::field(8))?;
        let (start, len) = (ready.offset.get() as usize, ready.len.get() as usize);
        let total = pending.data.len();
        if len == 0 || pending.expected > 0 || start.checked_add(len).is_none_or(|end| end > total) {
            return Err(FatalError { status: FatalStatus::DataOutOfRange, information: 12 });
        }
        let step = self.data_pdu_bytes as usize;
        if len == total && len <= step {
            // All of it in one PDU, as with most commands: the buffer itself is sent.
            let data = std::mem::take(&mut pending.data);
            self.put_transfer(ready, 0, true, data, effects);
            return Ok(());
        }
        for at in (start..start + len).step_by(step) {
            let end = (at + step).min(start + len);
            let mut piece = effects.output.take();
            if let Some(pending) = self.commands.get_mut(ready.command_id.get()) {
                piece.extend_from_slice(&pending.data[at..end]);
            }
            self.put_transfer(ready, at as u32, end == start + len, piece, effects);
        }
        Ok(())
    }

    fn put_transfer(
        &mut self,
        ready: &ReadyToTransfer,
        offset: u32,
        is_last: bool,
        data: Vec<u8>,
        effects: &mut Effects,
    ) {
        let header = DataHeader {
            command_id: ready.command_id,
            transfer_tag: ready.transfer_tag,
            offset: U32::new(offset),
            len: U32::new(data.len() as u32),
            reserved: U32::ZERO,
        };
        effects.output.header(|out| data_to_controller(out, header, is_last, self.digests, self.alignment));
        self.put_data(data, effects);
    }

    fn put_data(&self, data: Vec<u8>, effects: &mut Effects) {
        let digest = (self.digests.data && !data.is_empty()).then(|| DataDigest::of(&data));
        effects.output.payload(data);
        if let Some(digest) = digest {
            effects.output.header(|out| out.extend_from_slice(&digest));
        }
    }

    fn complete(&mut self, cqe: &Cqe, effects: &mut Effects) -> Result<(), ConnectionError> {
        // The command identifier is 12 bytes into the entry, which is 8 bytes into the PDU.
        let pending = self.commands.remove(cqe.command_id.get()).ok_or(FatalError::field(20))?;
        let status = if pending.is_damaged { Status::TRANSIENT_TRANSPORT } else { cqe.status() };
        match pending.owner {
            Owner::Caller(token) => {
                effects.completions.push(Completion { token, status, result: cqe.result.get(), data: pending.data });
                Ok(())
            }
            Owner::Setup => self.setup_step(status, cqe.result.get(), pending.data, effects),
            Owner::KeepAlive if status.is_success() => Ok(()),
            Owner::KeepAlive => Err(ConnectionError::Setup { step: "keep alive", status }),
            Owner::EventRequest if status.is_success() => {
                effects.events.push(AsyncEvent::decode(cqe.result.get() as u32));
                self.request_event(effects);
                Ok(())
            }
            Owner::EventRequest => Ok(()),
        }
    }

    pub(super) fn request_event(&mut self, effects: &mut Effects) {
        let sqe = AdminCommand::AsyncEventRequest.encode(0);
        // Without a free entry the host learns of events later, when it looks at the log.
        let _ = self.send(Owner::EventRequest, sqe, Data::None, effects);
    }
}
