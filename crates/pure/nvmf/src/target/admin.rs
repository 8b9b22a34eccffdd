//! Admin commands.

use super::answer::Answer;
use super::directory::Target;
use super::erase;
use super::manage;
use super::reserve;
use super::self_test;
use super::session::Session;
use flashyard_nvme::admin::{AdminCommand, Select};
use flashyard_nvme::feature::id;
use flashyard_nvme::{Sqe, Status};
use flashyard_units::SimTime;

impl Session {
    /// Answers an admin command of the admin queue; `None`: the answer comes later, as that to an event
    /// request does.
    pub(super) fn admin(
        &mut self,
        target: &mut Target,
        now: SimTime,
        sqe: &Sqe,
        data: &[u8],
        reply: &mut Vec<u8>,
    ) -> Option<Answer> {
        let Ok(command) = AdminCommand::decode(sqe) else {
            return Some(Answer::refusal(Status::INVALID_OPCODE));
        };
        let room = flashyard_nvme::sgl::Sgl::decode(&sqe.data).map_or(0, |sgl| sgl.len_bytes());
        let event_requests = usize::from(target.config.limits.event_requests);
        let Some(controller) = self.controller(target) else {
            return Some(Answer { status: Status::CONTROLLER_PATHING, result: 0 });
        };
        if !controller.is_ready() {
            return Some(Answer::refusal(Status::COMMAND_SEQUENCE));
        }
        Some(match command {
            AdminCommand::KeepAlive => Answer::SUCCESS,
            AdminCommand::AsyncEventRequest if controller.event_requests.len() >= event_requests => {
                Answer::refusal(Status::EVENT_REQUEST_LIMIT_EXCEEDED)
            }
            AdminCommand::AsyncEventRequest => {
                controller.event_requests.push_back(sqe.command_id.get());
                controller.is_at_work = true;
                return None;
            }
            AdminCommand::Abort { sq_id, command_id } => {
                return self.abort(target, sqe.command_id.get(), sq_id, command_id);
            }
            AdminCommand::Format(format) => {
                let begun = erase::format(self, target, sqe.command_id.get(), &format);
                return erase::answer_of(begun.map(|()| false));
            }
            AdminCommand::Sanitize(sanitize) => {
                return erase::answer_of(erase::sanitize(self, target, sqe.command_id.get(), &sanitize));
            }
            AdminCommand::ManageNamespace { nsid, select, command_set } => {
                return manage::manage(self, target, sqe.command_id.get(), (nsid, select, command_set), data);
            }
            AdminCommand::AttachNamespace { nsid, select } => {
                return manage::attach(self, target, sqe.command_id.get(), (nsid, select), data);
            }
            AdminCommand::SelfTest { nsid, code } => {
                return self_test::take(self, target, sqe.command_id.get(), (nsid, code));
            }
            AdminCommand::Identify(identify) => self.identify(target, &identify, reply),
            AdminCommand::GetLogPage(get) => self.log_page(target, &get, room, reply),
            AdminCommand::SetFeatures { save: true, .. } => Answer::refusal(Status::FEATURE_NOT_SAVEABLE),
            AdminCommand::SetFeatures { feature: feature @ (id::DEGRADED | id::RETIREMENT), values, .. } => {
                match self.ask_drive(target, sqe.command_id.get(), feature, values) {
                    Ok(()) => return None,
                    Err(status) => Answer::refusal(status),
                }
            }
            AdminCommand::SetFeatures { feature, values, .. } if reserve::is_feature(feature) => {
                let by = (self.queue.controller, sqe.command_id.get());
                return target.set_reservation_feature(by, feature, sqe.nsid.get(), values[0]);
            }
            AdminCommand::SetFeatures { feature, values, .. } => {
                self.set_feature(target, now, feature, sqe.nsid.get(), values, data)
            }
            AdminCommand::GetFeatures { feature, select, .. }
                if reserve::is_feature(feature) && select != Select::Supported =>
            {
                let is_current = select == Select::Current;
                target.reservation_feature(self.queue.controller, feature, sqe.nsid.get(), is_current)
            }
            AdminCommand::GetFeatures { feature, select, parameter } => {
                self.get_feature(target, now, (feature, parameter), select, reply)
            }
        })
    }
}
