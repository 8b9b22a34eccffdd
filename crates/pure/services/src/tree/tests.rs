//! The contract of services for trees of them, and shapes that are none.

use super::*;
use crate::{Mirrored, Prioritized, Shares, SpillOver, Striped};
use flashyard_service::PassThrough;
use flashyard_service::contract::{Plan, Trouble, check, check_seeds};

fn boxed(service: impl Service + Send + 'static) -> Box<dyn Service + Send> {
    Box::new(service)
}

fn leg(number: u8) -> Below {
    Below::Leg(Leg(number))
}

/// A stripe of two mirrors behind priorities: four volumes.
fn stripe_of_mirrors() -> Tree {
    Tree::new(vec![
        (boxed(Prioritized::new(Shares::published(1))), vec![Below::Service(1)]),
        (boxed(Striped::new(2, 4)), vec![Below::Service(2), Below::Service(3)]),
        (boxed(Mirrored::new(2, 4096)), vec![leg(0), leg(1)]),
        (boxed(Mirrored::new(2, 4096)), vec![leg(2), leg(3)]),
    ])
    .expect("it is a tree")
}

#[test]
fn the_contract_holds_for_trees() {
    check_seeds(200, stripe_of_mirrors);
    // A mirror of a chain and a border.
    check_seeds(200, || {
        Tree::new(vec![
            (boxed(Mirrored::new(2, 4096)), vec![Below::Service(1), Below::Service(3)]),
            (boxed(PassThrough), vec![Below::Service(2)]),
            (boxed(PassThrough), vec![leg(0)]),
            (boxed(SpillOver::new(11)), vec![leg(1), leg(2)]),
        ])
        .expect("it is a tree")
    });
    check_seeds(60, || Tree::new(vec![(boxed(PassThrough), vec![leg(0)])]).expect("it is a tree"));
}

#[test]
fn legs_that_end_below_a_tree_are_the_business_of_their_mirror() {
    for leg in 0..4 {
        let trouble = Trouble { gone: Some((leg, 150)), ..Trouble::default() };
        let seen = check(stripe_of_mirrors(), Plan { trouble, ..Plan::new(7) }).expect("the contract holds");
        assert_eq!(seen.failed, 0, "leg {leg}");
    }
}

#[test]
fn services_that_are_no_tree_are_refused() {
    let pass = |below: Below| (boxed(PassThrough), vec![below]);
    let error = |services| Tree::new(services).map(|_| ()).expect_err("it is none");
    assert_eq!(error(Vec::new()), TreeError::Count(0));
    assert_eq!(error(vec![pass(Below::Service(0))]), TreeError::Place { service: 0 });
    assert_eq!(error(vec![pass(leg(0)), pass(leg(1))]), TreeError::Place { service: 1 });
    assert_eq!(error(vec![pass(leg(1))]), TreeError::Volume { leg: 1 });
    assert_eq!(
        error(vec![(boxed(Striped::new(2, 1)), vec![leg(0)])]),
        TreeError::Legs { service: 0, needs: 2, named: 1 }
    );
    let both = vec![(boxed(Striped::new(2, 1)), vec![Below::Service(1), Below::Service(1)]), pass(leg(0))];
    assert_eq!(error(both), TreeError::Place { service: 1 });
}
