//! Shapes of trees: which service lies below which.

use flashyard_service::{Leg, Service};

/// Services of a tree at most.
const NODES_MAX: usize = 256;

/// A leg of a service in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// A volume below the tree.
    Leg(Leg),
    /// The service of this number.
    Service(usize),
}

/// Why services make no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// A service has another number of legs than were named.
    Legs {
        /// Its number.
        service: usize,
        /// Legs that it needs.
        needs: usize,
        /// Legs that were named.
        named: usize,
    },
    /// A service is below two others, below itself, or below none although it is not the first.
    Place {
        /// Its number.
        service: usize,
    },
    /// A volume is below two services, or volumes are not numbered from 0 on.
    Volume {
        /// Its number.
        leg: u8,
    },
    /// No service, or more than 256.
    Count(usize),
    /// A service does arithmetic on bytes, and one above it reads for itself, which a tree keeps to itself: only services that hand on what clients
    /// read and write ([`Service::hands_on`]) may lie above it.
    Mixes {
        /// Its number.
        service: usize,
    },
}

/// The shape of a tree.
pub(super) struct Shape {
    /// By service: the one above it.
    pub(super) above: Vec<Option<usize>>,
    /// Volumes below the tree.
    pub(super) volumes: usize,
}

impl Shape {
    /// The shape that services with these legs have; the first is the root.
    ///
    /// Errors: services that make no tree.
    pub(super) fn of(services: &[(Box<dyn Service + Send>, Vec<Below>)]) -> Result<Self, TreeError> {
        let count = services.len();
        if count == 0 || count > NODES_MAX {
            return Err(TreeError::Count(count));
        }
        let mut above: Vec<Option<usize>> = vec![None; count];
        let mut volumes: Vec<u8> = Vec::new();
        for (number, (service, legs)) in services.iter().enumerate() {
            let (needs, named) = (service.legs(), legs.len());
            if needs != named {
                return Err(TreeError::Legs { service: number, needs, named });
            }
            for leg in legs {
                match *leg {
                    Below::Leg(leg) => volumes.push(leg.0),
                    // A service after the one above it: nothing can be below itself.
                    Below::Service(below) if below > number && below < count && above[below].is_none() => {
                        above[below] = Some(number);
                    }
                    Below::Service(service) => return Err(TreeError::Place { service }),
                }
            }
        }
        let mut below = 0..count;
        if let Some(service) = below.find(|&number| services[number].0.mixes() && !hands_on(services, &above, number)) {
            return Err(TreeError::Mixes { service });
        }
        if let Some(service) = (1..count).find(|&number| above[number].is_none()) {
            return Err(TreeError::Place { service });
        }
        volumes.sort_unstable();
        if let Some((_, &leg)) = volumes.iter().enumerate().find(|&(place, &leg)| place != usize::from(leg)) {
            return Err(TreeError::Volume { leg });
        }
        Ok(Self { above, volumes: volumes.len() })
    }
}

/// Whether all services above one hand on what clients read and write.
fn hands_on(services: &[(Box<dyn Service + Send>, Vec<Below>)], above: &[Option<usize>], number: usize) -> bool {
    let mut next = above[number];
    // Each is above the one before, with a smaller number.
    while let Some(at) = next {
        if !services[at].0.hands_on() {
            return false;
        }
        next = above[at];
    }
    true
}
