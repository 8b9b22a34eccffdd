//! Worlds for the explorer of faults: services over legs whose write caches are volatile, and that lose their power.

mod agreements;
mod atomic;
mod channels;
pub mod client;
pub mod drill;
pub mod leg;
pub mod machine;
mod mirror;
mod versions;
mod whole;

pub use agreements::AgreementWorld;
pub use atomic::AtomicWorld;
pub use channels::ChannelWorld;
pub use mirror::MirrorWorld;
pub use versions::VersionWorld;

#[cfg(test)]
mod tests {
    use super::machine::Machine;
    use crate::{AtomicWrites, VersionRoom, Versioned};
    use flashyard_blk::Operation;
    use flashyard_kernel::Rng;
    use flashyard_service::contract::block_of;
    use flashyard_service::{Request, Service};

    const LEG: u64 = 140;

    /// Lets everything end.
    fn run<S: Service>(machine: &mut Machine<S>) {
        for _ in 0..5000 {
            if machine.next_time().is_none() {
                break;
            }
            machine.step();
        }
    }

    /// Writes, damages some of the leg from block `from` on, and starts again: every request has an answer, whatever it is.
    fn damage<S: Service>(make: impl Fn() -> S, take: impl Fn(&mut Machine<S>), from: u64) {
        for seed in 0..300 {
            let mut rng = Rng::named(seed, "damage");
            let mut machine = Machine::new(make(), LEG, false, Rng::named(seed, "damage.leg"));
            for round in 0..4 {
                run(&mut machine);
                take(&mut machine);
                for id in 0..6_u32 {
                    let operation = [Operation::Write, Operation::Trim, Operation::Flush][id as usize % 3];
                    let (first, count) = (rng.below(16), 1 + rng.below(4) as u32);
                    let request = Request { id, operation, first, count, durable: round == 1, source: 0 };
                    machine.submit(request, vec![block_of(u64::from(id) + 1); count as usize]);
                }
                run(&mut machine);
                assert_eq!(machine.answers.len(), 6, "seed {seed}");
                machine.answers.clear();
                for _ in 0..rng.below(3) {
                    let at = from + rng.below(LEG - from);
                    let mut block = *machine.get(at);
                    let byte = rng.below(64) as usize;
                    block[byte] = if rng.below(2) == 0 { rng.below(256) as u8 } else { block[byte] ^ 1 };
                    machine.set(at, block);
                }
                machine.cut_power(make());
            }
        }
    }

    #[test]
    fn damaged_logs_and_maps_are_read_without_harm() {
        damage(|| AtomicWrites::new(60), |_| {}, LEG - 60);
        let room = VersionRoom { slots: 3, store: 20, log: 6 };
        let take = |machine: &mut Machine<Versioned>| {
            let now = machine.now;
            // A slot that is not free is as good.
            let _ = machine.tell(|versions, out| versions.take(now, out));
        };
        damage(|| Versioned::new(room), take, 80);
    }
}
