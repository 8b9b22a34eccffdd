//! Hosts that may connect, and their proofs.

use crate::world::{HOST, World, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::auth::{Explanation, Hash};
use flashyard_nvmf::dhchap::Failure;
use flashyard_nvmf::initiator::{ConnectionError, InitiatorConfig};
use flashyard_nvmf::secret::Secret;
use flashyard_nvmf::target::{CloseReason, Host, Hosts, Limits, TargetConfig};

fn secret(byte: u8, transform: Option<Hash>) -> Secret {
    Secret::new(&[byte; 32], transform).expect("32 bytes are a secret")
}

fn listed(secret: Option<Secret>, controller_secret: Option<Secret>) -> TargetConfig {
    let mut config = target_config(Limits::default());
    config.subsystems[0].hosts = Hosts::Listed(vec![Host { secret, controller_secret, ..Host::new(HOST) }]);
    config
}

/// Why an admin connection fails.
fn failure(target: TargetConfig, change: impl FnOnce(&mut InitiatorConfig)) -> (World, ConnectionError) {
    let mut world = World::with(target, change);
    let admin = world.open(1, None);
    let error = world.links[admin].host_effects.failure.clone().expect("the connection must fail");
    (world, error)
}

#[test]
fn hosts_that_are_not_listed_are_refused() {
    let (_, error) = failure(listed(None, None), |config| config.host_nqn = "nqn.2026-01.test:stranger".into());
    let status = Status::CONNECT_INVALID_HOST.do_not_retry();
    assert_eq!(error, ConnectionError::Connect { status, parameter: None });
    assert_eq!(
        error.to_string(),
        "connect failed: this host is not one of those that may connect (Connect Invalid Host)"
    );
    World::with(listed(None, None), |_| ()).connect();
}

#[test]
fn a_host_that_knows_the_secret_is_let_in() {
    for transform in [None, Some(Hash::Sha256), Some(Hash::Sha384), Some(Hash::Sha512)] {
        let mut world = World::with(listed(Some(secret(1, transform)), None), |config| {
            config.secret = Some(secret(1, transform));
        });
        world.connect();
        world.write(1, &[5; 4096]);
        assert_eq!(world.read(1, 1), [5; 4096]);
    }
}

#[test]
fn both_sides_prove_when_both_have_secrets() {
    let both = || listed(Some(secret(1, None)), Some(secret(2, Some(Hash::Sha256))));
    let mut world = World::with(both(), |config| {
        config.secret = Some(secret(1, None));
        config.controller_secret = Some(secret(2, Some(Hash::Sha256)));
    });
    world.connect();
    let (_, error) = failure(both(), |config| {
        config.secret = Some(secret(1, None));
        config.controller_secret = Some(secret(3, None));
    });
    assert_eq!(error, ConnectionError::Authentication(Failure::Distrusted(Explanation::Failed)));
}

#[test]
fn a_wrong_secret_is_refused_and_the_connection_closed() {
    let (world, error) = failure(listed(Some(secret(1, None)), None), |config| config.secret = Some(secret(9, None)));
    assert_eq!(error, ConnectionError::Authentication(Failure::Refused(Explanation::Failed)));
    assert_eq!(world.links[0].effects.close, Some(CloseReason::AuthenticationFailed));
}

#[test]
fn a_host_without_a_secret_does_not_try() {
    let (_, error) = failure(listed(Some(secret(1, None)), None), |_| ());
    assert_eq!(error, ConnectionError::SecretMissing);
}
