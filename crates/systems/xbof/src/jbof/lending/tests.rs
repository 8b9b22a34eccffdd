//! Commands whose map is shared, in an enclosure that begins with a loan.

use super::super::config::Design;
use super::super::policy::Policy;
use super::super::request::{Phase, Purpose, Request};
use super::super::small;
use super::super::world::Jbof;
use super::{Lending, MappingCosts, Route};
use crate::xbof::window::Region;
use crate::xbof::{DescriptorKind, OWN_QUEUE, ProcessorInfo, shadow_queue};
use flashyard_blk::{BlockRequest, TraceRecord};
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_kernel::Rng;
use flashyard_measure::Source;
use flashyard_ssd::{LoanId, Operation};
use flashyard_stats::Shards;
use flashyard_units::{DriveId, SimSpan, SimTime};
use flashyard_workload::{RequestSource, SourceError};

const BORROWER: DriveId = DriveId::new(0);
const LENDER: DriveId = DriveId::new(2);

/// One request again and again.
struct Always(BlockRequest);

impl RequestSource for Always {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        Ok(Some(TraceRecord { arrival: SimTime::ZERO, volume: 0, request: self.0 }))
    }
}

/// A world of drives of 9000 slots whose busy ones ask for the first `slots` slots, twice each.
fn world(operation: Operation, slots: u32) -> Jbof {
    let mut config = small::config(Design::Xbof);
    config.drive.nand.geometry.blocks_per_plane = 96;
    (config.drive.ftl.logical_slots, config.drive.ftl.filled_slots) = (9000, 8500);
    let request = BlockRequest { operation, offset_bytes: 0, len_bytes: slots * SLOT_BYTES };
    let sources = (0..2).map(|_| -> Source { Box::new(Always(request)) }).collect();
    Jbof::new(config, small::plan(16), sources).expect("it can be built")
}

fn lending(world: &mut Jbof) -> &mut Lending {
    let Policy::Lending(lending) = &mut world.policy else { unreachable!("the design lends") };
    lending
}

/// The lender's processor is the borrower's, as descriptors and driver have it.
fn bind(world: &mut Jbof) {
    let info = ProcessorInfo {
        directory: Region::Directory.address(),
        borrower_queue: OWN_QUEUE,
        shadow_queue: shadow_queue(0),
    };
    let harvest = &mut lending(world).harvest;
    harvest.tables_mut().update(LENDER, 0, |now| {
        let offered = now.offered(DescriptorKind::Processor, 0, info.pack());
        offered.taken(BORROWER, info.pack()).expect("it is free").with_borrower_utilization(0.9)
    });
    harvest.tick_host();
    assert_eq!(harvest.bindings(BORROWER).len(), 1);
}

fn request(drive: DriveId, operation: Operation, first: u32, count: u32) -> Request {
    Request {
        stream: 0,
        drive,
        phase: Phase::Firmware,
        operation,
        purpose: Purpose::Foreground,
        first,
        count,
        source: 0,
        len_bytes: count * SLOT_BYTES,
        issued: SimTime::ZERO,
        stamp: 1,
    }
}

/// Costs of sharing the map to the firmware of a command of the borrower.
fn costs(world: &mut Jbof, operation: Operation, first: u32, count: u32) -> MappingCosts {
    let id = world.enclosure.new_request(SimTime::ZERO, request(BORROWER, operation, first, count));
    // No lock is held any more from the command before.
    let now = SimTime::ZERO + SimSpan::from_us(u64::from(id));
    let Policy::Lending(lending) = &mut world.policy else { unreachable!("the design lends") };
    lending.mapping_costs(&world.enclosure, now, id)
}

#[test]
fn a_core_is_busy_while_it_holds_the_locks_of_a_shared_map_and_of_no_other() {
    let mut world = world(Operation::Read, 1);
    assert_eq!(costs(&mut world, Operation::Read, 1000, 100), MappingCosts::default());
    bind(&mut world);
    let held = |nanoseconds| MappingCosts { held: SimSpan::from_ns(nanoseconds), waits: SimSpan::ZERO };
    assert_eq!(costs(&mut world, Operation::Read, 0, 1), held(100));
    assert_eq!(costs(&mut world, Operation::Read, 1000, 100), held(200), "two pages of the map");
    assert_eq!(costs(&mut world, Operation::Write, 5000, 1), held(200));
    assert_eq!(costs(&mut world, Operation::Flush, 0, 0), held(0));
}

#[test]
fn a_command_larger_than_a_message_queue_ends_and_one_without_messages_for_its_slots_may_go_to_a_lender() {
    for (operation, goes) in [(Operation::Trim, true), (Operation::Read, false)] {
        let mut world = world(operation, 4096);
        bind(&mut world);
        let run = world.run_with_faults(100_000).expect("it runs");
        assert_eq!(run.faults, Vec::<String>::new(), "{operation:?}");
        assert_eq!(lending(&mut world).redirected > 0, goes, "{operation:?}");
    }
}

#[test]
fn a_drive_that_is_idle_for_a_minute_lends_memory_that_it_needed_before() {
    let mut world = world(Operation::Read, 1);
    let Jbof { policy: Policy::Lending(lending), enclosure, .. } = &mut world else { unreachable!("the design lends") };
    let pages = enclosure.models[LENDER.index()].map_pages();
    // A curve that samples every page: there are few.
    lending.curves[LENDER.index()] = Shards::geometric(64);
    let mut draw = Rng::named(1, "pages");
    (0..200).for_each(|_| lending.warm_curve(LENDER.index(), draw.below(pages.into()) as u32));
    let index = lending.harvest.config().processor_offers as u16;
    lending.tick(enclosure, SimTime::ZERO + SimSpan::from_ms(10));
    assert!(!lending.harvest.tables().load(LENDER, index).is_valid(), "every page is used as often as any other");
    for second in 1..=60 {
        lending.tick(enclosure, SimTime::ZERO + SimSpan::from_secs(second));
    }
    assert!(lending.harvest.tables().load(LENDER, index).is_valid());
}

/// Lets the borrower keep pages of its map in memory of the lender: those with the lowest numbers that were on flash only.
fn lend_memory(world: &mut Jbof, segments: &[u32]) {
    let data = &mut world.enclosure.drives[BORROWER.index()].data;
    data.attach_segments(LoanId { lender: LENDER, offer: 0 }, segments);
    data.cache.warm_offsite();
}

#[test]
fn a_commit_is_paid_for_each_changed_entry_in_borrowed_memory_and_for_no_other() {
    let mut world = world(Operation::Read, 1);
    lend_memory(&mut world, &[0, 1]);
    let cache = &world.enclosure.drives[BORROWER.index()].data.cache;
    let (away, home) = (0..cache.pages()).partition::<Vec<u32>, _>(|&page| cache.frame_of(page).is_some());
    assert!(away.len() == 2 && !home.is_empty(), "{away:?} {home:?}");
    let mut commits = |operation, first, count| {
        let waits = costs(&mut world, operation, first, count).waits;
        assert_eq!(waits.as_ps() % 321_900, 0);
        waits.as_ps() / 321_900
    };
    let slot = |page: u32| page * SLOTS_PER_TRANSLATION_PAGE;
    assert_eq!(commits(Operation::Write, slot(away[0]) + 8, 6), 6);
    assert_eq!(commits(Operation::Trim, slot(away[0]) + 100, 6), 6);
    assert_eq!(commits(Operation::Read, slot(away[0]) + 200, 6), 0);
    assert_eq!(commits(Operation::Write, slot(home[0]) + 8, 6), 0, "an entry at home is protected as it is");
    let data = &mut world.enclosure.drives[BORROWER.index()].data;
    (0..4).for_each(|offset| assert!(data.ftl.trim(slot(away[1]) + offset).is_some()));
    assert_eq!(
        costs(&mut world, Operation::Trim, slot(away[1]), 6).waits.as_ps(),
        2 * 321_900,
        "two entries are left to change"
    );
}

/// Operations that the owner's agent is paid for, of a command that a lender has wrapped; and flash reads found in the map.
fn unwrapped(operation: Operation, first: u32, count: u32) -> (u64, u64) {
    let mut world = world(Operation::Read, 1);
    bind(&mut world);
    let Jbof { policy: Policy::Lending(lending), enclosure, .. } = &mut world else { unreachable!("the design lends") };
    let request = request(BORROWER, operation, first, count);
    let id = enclosure.new_request(SimTime::ZERO, request);
    lending.routes.resize(
        id as usize + 1,
        Route { compute: LENDER, offer: 0, generation: 0, in_shadow: false, busy: SimSpan::ZERO },
    );
    let translation = enclosure.drives[BORROWER.index()].data.translate(&request.command(id));
    let reads = translation.as_ref().map_or(0, |translation| translation.reads().len() as u64);
    lending.wrap(id, &request, translation);
    lending.take_messages(enclosure, SimTime::ZERO, BORROWER, LENDER);
    let busy = enclosure.drives[BORROWER.index()].compute.busy().as_ps();
    assert_eq!(busy % 114_200, 0);
    (busy / 114_200, reads)
}

#[test]
fn the_agent_is_paid_for_the_operations_that_are_in_the_ring() {
    // The last four pages of the map are in memory.
    let (operations, reads) = unwrapped(Operation::Read, 6000, 16);
    assert!(reads > 0 && operations == 1 + reads, "{operations} for {reads} flash reads");
    assert_eq!(unwrapped(Operation::Read, 8600, 16), (1, 0), "nothing was ever written there");
    assert_eq!(unwrapped(Operation::Trim, 6000, 16), (2, 0));
}

#[test]
fn commands_that_wait_for_a_lender_are_not_taken_for_its_work_yet() {
    let mut world = world(Operation::Read, 1);
    bind(&mut world);
    let now = SimTime::ZERO;
    let Jbof { policy: Policy::Lending(lending), enclosure, .. } = &mut world else { unreachable!("the design lends") };
    // The lender's one core works for itself, and three commands of the borrower wait behind that.
    let own = enclosure.drives[LENDER.index()].firmware_job(u32::MAX, 16);
    enclosure.enqueue(now, LENDER, 1, own);
    for _ in 0..3 {
        let id = enclosure.new_request(now, request(BORROWER, Operation::Read, 0, 16));
        lending.begin(id, BORROWER);
        lending.routes.resize(
            id as usize + 1,
            Route { compute: LENDER, offer: 0, generation: 0, in_shadow: true, busy: SimSpan::ZERO },
        );
        lending.arrive(enclosure, now, id);
    }
    let reading = lending.read_monitors(enclosure, LENDER.index(), SimSpan::from_ms(1));
    assert!(reading.processor > 0.0);
    assert!((reading.processor_own - reading.processor).abs() < 1e-12, "{reading:?}");
}
