//! Stub: replaced by the dialogue of DH-HMAC-CHAP.
use super::directory::Target;
use super::session::{Answer, Session};
use crate::secret::Secret;
use flashyard_nvme::Status;
use flashyard_nvme::fabrics::Authentication;

#[derive(Debug)]
pub(super) struct Dialogue;

impl Dialogue {
    pub(super) fn new(_: Secret, _: Option<Secret>, _: &str, _: &str, _: &[u8; 32], _: u64) -> Self {
        Self
    }
}

impl Session {
    pub(super) fn authentication_send(&mut self, _: &mut Target, _: Authentication, _: &[u8]) -> Answer {
        Answer::refusal(Status::INVALID_FIELD)
    }

    pub(super) fn authentication_receive(&mut self, _: Authentication, _: &mut Vec<u8>) -> Answer {
        Answer::refusal(Status::INVALID_FIELD)
    }
}
