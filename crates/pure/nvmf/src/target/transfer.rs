//! The data of commands on its way in: R2Ts, and the PDUs that follow them.

use super::directory::Target;
use super::effects::Effects;
use super::session::{Session, Sink};
use super::slots::{Slots, Tag};
use flashyard_nvme::Status;
use flashyard_nvme::tcp::{DataHeader, FatalError, FatalStatus, ReadyToTransfer, ready_to_transfer};
use flashyard_units::SimTime;
use zerocopy::little_endian::{U16, U32};

impl Session {
    /// Bytes of writes that the host has been asked for and that are not handed to the backend.
    pub fn granted_bytes(&self) -> usize {
        self.granted
    }

    /// Whether data of writes waits for [`Room::transfers`].
    pub fn awaits_room(&self) -> bool {
        !self.ungranted.is_empty()
    }

    /// Asks for the data of commands that have waited for room, in their order.
    pub(super) fn grant(&mut self, target: &Target, effects: &mut Effects) {
        while let Some(&tag) = self.ungranted.front() {
            let expected = self.slots.get_mut(tag).map_or(0, |slot| slot.expected as usize);
            if expected > self.to_grant {
                return;
            }
            self.ungranted.pop_front();
            self.grant_one(tag);
            self.request_data(target, tag, effects);
        }
    }

    fn grant_one(&mut self, tag: Tag) {
        if let Some(slot) = self.slots.get_mut(tag) {
            slot.is_granted = true;
            self.granted += slot.expected as usize;
            self.to_grant = self.to_grant.saturating_sub(slot.expected as usize);
        }
    }

    /// Asks for the data of a command, or lets it wait behind others.
    pub(super) fn begin_transfer(&mut self, target: &Target, tag: Tag, effects: &mut Effects) {
        self.ungranted.push_back(tag);
        self.grant(target, effects);
    }

    /// Sends as many R2Ts as may be outstanding.
    fn request_data(&mut self, target: &Target, tag: Tag, effects: &mut Effects) {
        let step = match target.config.limits.transfer_bytes {
            0 => u32::MAX,
            bytes => bytes,
        };
        let Some(slot) = self.slots.get_mut(tag) else { return };
        slot.payload.reserve(slot.expected as usize - slot.payload.len());
        loop {
            let outstanding = (slot.requested - slot.payload.len() as u32).div_ceil(step);
            if slot.requested == slot.expected || outstanding >= self.transfers_outstanding {
                break;
            }
            let len = step.min(slot.expected - slot.requested);
            let body = ReadyToTransfer {
                command_id: U16::new(slot.command_id),
                transfer_tag: U16::new(Slots::transfer_tag(tag)),
                offset: U32::new(slot.requested),
                len: U32::new(len),
                reserved: U32::ZERO,
            };
            slot.requested += len;
            effects.output.header(|out| ready_to_transfer(out, body, self.digests));
        }
    }

    /// Data that an R2T asked for: it must be the next in order.
    pub(super) fn on_data_header(&mut self, header: &DataHeader) -> Result<(), FatalError> {
        // Offsets of the fields within the PDU: command identifier 8, transfer tag 10, data offset 12.
        let tag = self.slots.tag_of(header.transfer_tag.get()).ok_or(FatalError::field(10))?;
        let slot = self.slots.get_mut(tag).filter(|slot| !slot.is_submitted).ok_or(FatalError::field(10))?;
        if slot.command_id != header.command_id.get() {
            return Err(FatalError::field(8));
        }
        if header.offset.get() as usize != slot.payload.len() {
            return Err(FatalError { status: FatalStatus::DataOutOfRange, information: 12 });
        }
        let end = header.offset.get().checked_add(header.len.get());
        if end.is_none_or(|end| end > slot.requested) {
            return Err(FatalError { status: FatalStatus::DataOutOfRange, information: 16 });
        }
        self.sink = Sink::Slot(tag);
        Ok(())
    }

    pub(super) fn on_data(&mut self, data: &[u8]) {
        let Sink::Slot(tag) = self.sink else { return };
        if let Some(slot) = self.slots.get_mut(tag) {
            slot.payload.extend_from_slice(data);
        }
    }

    pub(super) fn on_data_end(&mut self, target: &mut Target, now: SimTime, is_intact: bool, effects: &mut Effects) {
        let Sink::Slot(tag) = std::mem::replace(&mut self.sink, Sink::Discard) else { return };
        let Some(slot) = self.slots.get_mut(tag) else { return };
        if !is_intact {
            slot.failure = Some(Status::TRANSIENT_TRANSPORT);
        }
        if slot.payload.len() == slot.expected as usize {
            if std::mem::take(&mut slot.is_granted) {
                self.granted -= slot.expected as usize;
            }
            self.execute(target, now, tag, effects);
        } else {
            self.request_data(target, tag, effects);
        }
    }
}
