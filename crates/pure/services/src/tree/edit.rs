//! Services that come into a tree, and leave it, while nothing is under way.

use super::{Below, Inner, Node, Tree};
use flashyard_blk::VolumeInfo;
use flashyard_kernel::Slab;
use flashyard_service::{Leg, Orders, PassThrough, Service};
use flashyard_units::SimTime;

/// Why a service does not leave a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaveError {
    /// There is no leg that has all that clients have written, or it lays blocks out in a way of its own.
    #[error("none of its legs has all blocks in their places")]
    Legs,
    /// Blocks have lost what was written to them last, and would be read as they were before.
    #[error(
        "what was written last to some blocks is lost, and they would be read as they were before: write them first"
    )]
    Lost,
    /// The volume above would have other blocks.
    #[error("what is above it would stand on {has} blocks, and stands on {needs}")]
    Blocks {
        /// Blocks of the leg that would be left.
        has: u64,
        /// Blocks of the service.
        needs: u64,
    },
}

impl Tree {
    /// Whether nothing is under way: services may come and leave.
    pub fn is_idle(&self) -> bool {
        self.placed.is_empty() && self.nodes.iter().all(|node| node.requests.is_empty())
    }

    /// Properties of a place as the service above it sees them.
    pub fn info_of(&self, place: Below, volumes: &[VolumeInfo]) -> Option<VolumeInfo> {
        match place {
            Below::Leg(leg) => volumes.get(usize::from(leg.0)).copied(),
            Below::Service(node) if node < self.nodes.len() => Some(self.info_of_service(node, volumes)),
            Below::Service(_) => None,
        }
    }

    /// A service comes between a place and what is above it. Its legs are those of `legs`, in which the place is the one at `at`; the others are
    /// volumes that no service has yet, and what lies there does not count. Returns its number. Panics where something is under way.
    pub fn insert(
        &mut self,
        now: SimTime,
        service: Box<dyn Service + Send>,
        legs: Vec<Below>,
        at: usize,
        volumes: &[VolumeInfo],
        out: &mut Orders,
    ) -> usize {
        assert!(self.is_idle(), "services come while nothing is under way");
        let (place, count) = (legs[at], legs.len());
        let above = self.above(place);
        self.volumes += legs.len() - 1;
        let node = Node {
            service,
            legs,
            above: above.map(|(node, _)| node),
            requests: Slab::default(),
            buffers: Vec::new(),
            wake_at: None,
        };
        let mut number = self.nodes.len();
        self.nodes.push(node);
        match (above, place) {
            (Some((node, leg)), _) => self.nodes[node].legs[usize::from(leg.0)] = Below::Service(number),
            // The first service is the one that clients see.
            (None, Below::Service(old)) => {
                self.exchange(old, number);
                number = old;
            }
            (None, Below::Leg(_)) => unreachable!("each volume is below a service"),
        }
        self.connect();
        self.start_one(number, now, volumes, out);
        for leg in (0..count).filter(|leg| *leg != at) {
            // A service that keeps nothing there needs not know.
            let _ = self.nodes[number].service.replaced(Leg(leg as u8));
        }
        self.go_on(now, out);
        number
    }

    /// A service leaves: what it stands on takes its place. Returns the volumes that nothing stands on any more. Panics where something is under
    /// way.
    ///
    /// Errors: a service that cannot leave.
    pub fn leave(
        &mut self,
        now: SimTime,
        node: usize,
        volumes: &[VolumeInfo],
        out: &mut Orders,
    ) -> Result<Vec<Leg>, LeaveError> {
        assert!(self.is_idle(), "services leave while nothing is under way");
        let service = &self.nodes[node].service;
        let why = if service.has_lost() { LeaveError::Lost } else { LeaveError::Legs };
        let Leg(kept) = service.alone().ok_or(why)?;
        let kept = self.nodes[node].legs[usize::from(kept)];
        let blocks = |place| self.info_of(place, volumes).map_or(0, |info| info.limits.blocks);
        let (has, needs) = (blocks(kept), blocks(Below::Service(node)));
        if has != needs {
            return Err(LeaveError::Blocks { has, needs });
        }
        let mut free = Vec::new();
        let mut gone: Vec<usize> = vec![node];
        let others = self.nodes[node].legs.iter().copied().filter(|leg| *leg != kept).collect::<Vec<_>>();
        others.into_iter().for_each(|place| self.collect(place, &mut free, &mut gone));
        match (self.above(Below::Service(node)), kept) {
            (Some((above, leg)), _) => self.nodes[above].legs[usize::from(leg.0)] = kept,
            (None, Below::Service(below)) => {
                self.exchange(node, below);
                gone[0] = below;
            }
            (None, Below::Leg(_)) => {
                (self.nodes[node].service, self.nodes[node].legs) = (Box::new(PassThrough), vec![kept]);
                gone.remove(0);
            }
        }
        // From the last on, so that the numbers of the others stay.
        gone.sort_unstable();
        for node in gone.into_iter().rev() {
            let last = self.nodes.len() - 1;
            self.exchange(node, last);
            self.nodes.pop();
        }
        self.volumes -= free.len();
        self.connect();
        self.go_on(now, out);
        Ok(free)
    }

    /// A volume that no service has yet becomes the last leg of a service. Returns whether the service takes it; then the tree is to be woken.
    pub fn attach(&mut self, now: SimTime, node: usize, leg: Leg, out: &mut Orders) -> bool {
        let is_taken = self.nodes.get_mut(node).is_some_and(|node| node.service.attach());
        if is_taken {
            self.nodes[node].legs.push(Below::Leg(leg));
            self.volumes += 1;
            self.go_on(now, out);
        }
        is_taken
    }

    /// The service of a number: its name, and what it stands on.
    pub fn service(&self, node: usize) -> Option<(&'static str, &[Below])> {
        let node = self.nodes.get(node)?;
        Some((node.service.name(), &node.legs))
    }

    /// Number of its services.
    pub fn services(&self) -> usize {
        self.nodes.len()
    }

    /// The state of a service in a few words, if it has anything to say.
    pub fn note_of(&self, node: usize) -> Option<String> {
        self.nodes.get(node)?.service.note()
    }

    /// A tree whose services have started already, over volumes with these properties.
    pub fn resume(&mut self, volumes: &[VolumeInfo]) {
        self.block_bytes = volumes.first().map_or(0, |leg| leg.block_bytes as usize);
    }

    /// The volumes and services below a place.
    fn collect(&self, place: Below, volumes: &mut Vec<Leg>, services: &mut Vec<usize>) {
        match place {
            Below::Leg(leg) => volumes.push(leg),
            Below::Service(node) => {
                services.push(node);
                self.nodes[node].legs.iter().for_each(|&leg| self.collect(leg, volumes, services));
            }
        }
    }

    /// Two services exchange their numbers.
    fn exchange(&mut self, one: usize, other: usize) {
        self.nodes.swap(one, other);
        let renamed = |number: usize| match number {
            number if number == one => other,
            number if number == other => one,
            number => number,
        };
        for leg in self.nodes.iter_mut().flat_map(|node| &mut node.legs) {
            if let Below::Service(number) = leg {
                *number = renamed(*number);
            }
        }
    }

    /// Notes for each service which one is above it.
    fn connect(&mut self) {
        for node in 0..self.nodes.len() {
            self.nodes[node].above = self.above(Below::Service(node)).map(|(above, _)| above);
        }
        self.inner.clear();
        self.inner.resize_with(self.nodes.len(), Vec::<Inner>::new);
    }

    /// Every service is woken: their timers may have been told to another tree.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        self.nodes.iter_mut().for_each(|node| node.wake_at = Some(now));
        self.wake(now, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mirrored, Prioritized, Shares};
    use flashyard_blk::{Operation, Payload, Volume, VolumeRequest};
    use flashyard_service::Over;
    use flashyard_service::contract::{ModelVolume, Plan, block_of};
    use flashyard_units::{SimSpan, VolumeId};

    const BLOCKS: u64 = 512;

    fn run(volume: &mut Over<Tree, ModelVolume>, now: &mut SimTime, stamp: Option<u64>) {
        let mut ended = Vec::new();
        for block in 0..BLOCKS {
            let operation = if stamp.is_some() { Operation::Write } else { Operation::Read };
            let request = VolumeRequest { volume: VolumeId::new(0), operation, first: block, count: 1, source: 0 };
            let payload = stamp.map_or(Payload::None, |stamp| Payload::Bytes(block_of(block + stamp).to_vec()));
            volume.submit(*now, block, &request, payload).expect("it takes it");
            while ended.len() as u64 <= block {
                *now = volume.advance(*now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
            }
        }
        assert!(ended.iter().all(|done| done.result.is_ok()));
        let expected = |block: u64| block_of(block + 7000).to_vec();
        assert!(
            stamp.is_some() || ended.iter().all(|done| done.bytes == expected(done.token)),
            "it reads what was written"
        );
    }

    #[test]
    fn a_mirror_and_a_priority_come_and_leave_and_every_block_stays() {
        let plan = Plan { leg_blocks: BLOCKS, ..Plan::new(1) };
        let leg = |number| Below::Leg(Leg(number));
        let tree = Tree::new(vec![(Box::new(PassThrough), vec![leg(0)])]).expect("it is a tree");
        let mut volume = Over::new(VolumeId::new(0), tree, vec![ModelVolume::new(0, plan)]);
        let mut now = SimTime::ZERO;
        run(&mut volume, &mut now, Some(7000));
        volume.add_leg(ModelVolume::new(1, plan));
        let infos: Vec<VolumeInfo> = volume.legs_mut().iter().map(|leg| leg.info()).collect();
        // Above the volume.
        let mirror = Box::new(Mirrored::new(2, BLOCKS));
        let number = volume.tell(|tree, now, out| tree.insert(now, mirror, vec![leg(0), leg(1)], 0, &infos, out));
        assert_eq!(number, 1);
        let mut ended = Vec::new();
        while volume.service().rebuild().is_some_and(|rebuild| rebuild.left > 0) || !volume.service().is_idle() {
            now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
        }
        // Above all.
        let number = volume.tell(|tree, now, out| {
            tree.insert(now, Box::new(Prioritized::new(Shares::published(1))), vec![Below::Service(0)], 0, &infos, out)
        });
        assert_eq!(number, 0, "clients see it");
        run(&mut volume, &mut now, None);
        // The old volume ends, and then the mirror leaves with what it has still.
        volume.legs_mut()[0].end_now();
        run(&mut volume, &mut now, None);
        let free = volume.tell(|tree, now, out| {
            // The one that clients saw first is the last now.
            let mirror = (0..3).find(|&node| tree.nodes[node].service.rebuild().is_some()).expect("it is there");
            let free = tree.leave(now, mirror, &infos, out);
            assert_eq!(tree.leave(now, 0, &infos, out), Ok(Vec::new()));
            free
        });
        assert_eq!(free, Ok(vec![Leg(0)]));
        run(&mut volume, &mut now, None);
        assert_eq!(volume.service().nodes.len(), 1);
    }
}
