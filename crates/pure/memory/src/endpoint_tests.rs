//! An endpoint request by request, with the laws that hold over any sequence of them.

use super::*;
use crate::ahead::Stages;
use crate::lent::LentConfig;
use crate::path::PathConfig;
use flashyard_cxl::Annotation;
use flashyard_units::ByteRate;
use proptest::prelude::*;

fn config(reads_annotations: bool) -> EndpointConfig {
    EndpointConfig {
        controller: SimSpan::from_ns(10),
        dram: DramConfig {
            channels: 1,
            banks: 8,
            row_bytes: 2048,
            precharge: SimSpan::from_ns(9),
            activate: SimSpan::from_ns(9),
            column: SimSpan::from_ns(9),
            burst: SimSpan::from_ns(3),
            controller: SimSpan::from_ns(5),
        },
        cache_pages: 32,
        policy: PolicyKind::Lru,
        caches_loads: true,
        buffers_lines: false,
        reads_lines: false,
        reads_annotations,
        reads_buffering: true,
        unannounced_part: 4,
        prefetch_pages: 2,
        guard: SimSpan::from_us(30),
        medium: MediumConfig::InPlace {
            pages: 1000,
            units: 4,
            // Sixteen parts of a page on four units: 3 us, and 100 us.
            read: SimSpan::from_ns(750),
            write: SimSpan::from_us(25),
        },
    }
}

fn access(operation: Transaction, page: u64, annotation: Annotation) -> MemoryAccess {
    MemoryAccess { annotation, ..MemoryAccess::lines(operation, page * PAGE_BYTES, 1) }
}

/// Metadata of which one page in three needs a read.
struct EveryThird;

impl LookUp for EveryThird {
    fn reads(&mut self, page: u32, missed: &mut dyn FnMut(u32)) {
        if page.is_multiple_of(3) {
            missed(page / 16);
        }
    }
}

fn lent() -> LentConfig {
    LentConfig {
        lenders: 2,
        segments: 1,
        path: PathConfig {
            link_rate: ByteRate::from_mb(16_000),
            port: SimSpan::from_ns(100),
            switches: 0,
            switch: SimSpan::ZERO,
        },
        dram: config(false).dram,
        idle: SimSpan::from_us(300),
        busy: SimSpan::from_us(100),
        returns_after: 4,
        seed: 1,
    }
}

#[test]
fn a_page_that_left_for_a_lender_is_loaded_over_the_fabric_and_one_that_is_stored_to_comes_back() {
    let lent = Lent::new(LentConfig { idle: SimSpan::from_ms(1_000_000), ..lent() }).expect("it is possible");
    let mut endpoint = Endpoint::new(config(false)).expect("it is possible").borrowing(lent);
    for page in 0..33 {
        endpoint.serve(AT(page * 10_000), &access(Transaction::Load, page, Annotation::default()));
    }
    let load = endpoint.serve(AT(400_000), &access(Transaction::Load, 0, Annotation::default()));
    assert!(!load.from_medium && load.at < AT(400_400), "{:?}", load.at);
    endpoint.serve(AT(410_000), &access(Transaction::Store, 0, Annotation::default()));
    assert!(endpoint.slot_of(0).is_some());
    let counters = endpoint.lent().expect("it borrows").counters();
    assert_eq!((counters.hits, counters.returned, counters.taken), (2, 1, 2), "page 1 left for page 0");
    // The page itself is written when it leaves: its lender has no changed one.
    assert_eq!(endpoint.counters().written_back, 0);
    for page in 100..132 {
        endpoint.serve(AT(500_000 + page * 10_000), &access(Transaction::Load, page, Annotation::default()));
    }
    assert_eq!(endpoint.counters().written_back, 1);
}

#[test]
fn a_look_up_pays_for_its_metadata_before_its_page_is_found() {
    let of = |look_up| {
        let made = |pages, _| Ok(PageCache { look_up, ..PageCache::of_policy(PolicyKind::Lru, pages) });
        let mut endpoint = Endpoint::with_pages(config(false), made).expect("it is possible");
        endpoint.warm(3 * PAGE_BYTES, false, true);
        endpoint.serve(AT(0), &access(Transaction::Load, 3, Annotation::default())).at
    };
    let (known, read) = (of(None), of(Some(Box::new(EveryThird) as Box<dyn LookUp + Send>)));
    // Row closed: activate, column, burst, controller.
    assert_eq!(read.since(known), SimSpan::from_ns(26));
}

const KEPT: Annotation = Annotation { deterministic: false, buffering: Buffering::Bufferable };
const NOT_BUFFERED: Annotation = Annotation { deterministic: false, buffering: Buffering::NotBufferable };
const AT: fn(u64) -> SimTime = |ns| SimTime::ZERO + SimSpan::from_ns(ns);

#[test]
fn a_miss_waits_for_the_medium_and_a_hit_does_not() {
    let mut endpoint = Endpoint::new(config(false)).expect("it is possible");
    let load = access(Transaction::Load, 7, Annotation::default());
    assert_eq!(endpoint.serve(AT(0), &load), Served { at: AT(10 + 3000), from_medium: true });
    // Row closed: activate, column, burst, controller.
    assert_eq!(endpoint.serve(AT(5000), &load), Served { at: AT(5000 + 10 + 26), from_medium: false });
    let counters = *endpoint.counters();
    assert_eq!((counters.requests, counters.hits, counters.prefetched), (2, 1, 0));
}

#[test]
fn a_line_that_is_there_waits_for_no_line_that_is_not() {
    let mut endpoint = Endpoint::new(config(false)).expect("it is possible");
    let load = |page| access(Transaction::Load, page, Annotation::default());
    endpoint.serve(AT(0), &load(1));
    // Page 2 is on its way until 8 us, and a second load of it waits for that.
    endpoint.serve(AT(5000), &load(2));
    let waits = endpoint.serve(AT(5100), &load(2));
    assert_eq!(
        waits,
        Served { at: AT(5010 + 3000 + 17 + 18), from_medium: true },
        "the page, then a row that is not open"
    );
    let there = endpoint.serve(AT(5200), &load(1));
    assert_eq!(there, Served { at: AT(5200 + 10 + 26), from_medium: false });
}

#[test]
fn loads_pass_internal_dram_that_does_not_cache_them() {
    let mut endpoint = Endpoint::new(EndpointConfig { caches_loads: false, ..config(true) }).expect("it is possible");
    for (at, page, annotation, hit) in
        [(0, 7, Annotation::default(), false), (5000, 7, KEPT, false), (10_000, 7, KEPT, true)]
    {
        let served = endpoint.serve(AT(at), &access(Transaction::Load, page, annotation));
        assert_eq!(served.from_medium, !hit, "at {at}");
    }
}

#[test]
fn a_buffer_of_stores_answers_no_load_and_completes_a_page_before_it_is_written() {
    let config = EndpointConfig { caches_loads: false, buffers_lines: true, ..config(false) };
    let mut endpoint = Endpoint::new(config).expect("it is possible");
    let of = |operation, page| access(operation, page, Annotation::default());
    assert!(endpoint.serve(AT(0), &of(Transaction::Store, 7)).at < AT(100), "it is buffered, and fetches nothing");
    let load = endpoint.serve(AT(1000), &of(Transaction::Load, 7));
    assert_eq!((load.at, endpoint.counters().hits), (AT(1010 + 3000), 0), "the medium has the rest of its page");
    assert_eq!(endpoint.stage(AT(5000), 7 * PAGE_BYTES), AT(8000), "a page that is staged is read as well");
    endpoint.release(7 * PAGE_BYTES);
    assert!(!endpoint.serve(AT(9000), &of(Transaction::Load, 7)).from_medium);
    assert_eq!(endpoint.flush(AT(20_000)), AT(120_000), "all of it is there");
    endpoint.serve(AT(200_000), &of(Transaction::Store, 9));
    assert_eq!(endpoint.flush(AT(300_000)), AT(403_000), "it is read first");
    endpoint.warm(11 * PAGE_BYTES, true, true);
    assert!(endpoint.serve(AT(500_000), &of(Transaction::Load, 11)).from_medium, "a store had changed it");
    for page in 100..132 {
        endpoint.serve(AT(600_000 + page * 10_000), &of(Transaction::Store, page));
    }
    assert_eq!(endpoint.counters().written_back, 1);
}

#[test]
fn a_load_that_is_not_kept_takes_its_line_alone_where_the_device_reads_lines() {
    // Two lines of a page on different cells: each is read for itself, or both wait for the page.
    let second = |reads_lines, first| {
        let config = EndpointConfig { caches_loads: false, reads_lines, ..config(false) };
        let mut endpoint = Endpoint::new(config).expect("it is possible");
        let load = |offset| MemoryAccess::lines(Transaction::Load, 7 * PAGE_BYTES + offset, 1);
        assert_eq!(endpoint.serve(AT(0), &load(0)), Served { at: AT(first), from_medium: true });
        endpoint.serve(AT(0), &load(1024 - 256))
    };
    assert_eq!(second(true, 760), Served { at: AT(760), from_medium: true });
    assert_eq!(second(false, 3010), Served { at: AT(6010), from_medium: true });
}

#[test]
fn a_bufferable_miss_of_a_walk_brings_the_pages_after_it() {
    let mut endpoint = Endpoint::new(config(true)).expect("it is possible");
    for (us, page) in [(0, 7), (10, 20), (20, 500)] {
        assert!(endpoint.serve(AT(1000 * us), &access(Transaction::Load, page, KEPT)).from_medium);
    }
    assert_eq!(endpoint.counters().prefetched, 0, "they are no walk");
    endpoint.serve(AT(30_000), &access(Transaction::Load, 8, KEPT));
    let served = endpoint.serve(AT(40_000), &access(Transaction::Load, 10, KEPT));
    assert_eq!((served.from_medium, endpoint.counters().prefetched), (false, 2));
}

#[test]
fn a_store_that_is_not_bufferable_ends_on_the_medium() {
    let mut endpoint = Endpoint::new(config(true)).expect("it is possible");
    let served = endpoint.serve(AT(0), &access(Transaction::Store, 7, NOT_BUFFERED));
    assert_eq!(served.at, AT(10 + 3000 + 100_000));
    let buffered = endpoint.serve(AT(200_000), &access(Transaction::Store, 8, KEPT));
    assert!(buffered.at < AT(200_100));
    // Only the page that was buffered is left to be flushed: its fetch occupies its unit first.
    assert_eq!(endpoint.flush(AT(300_000)), AT(400_000));
    assert_eq!(endpoint.flush(AT(500_000)), AT(500_000), "nothing is changed any more");
}

#[test]
fn a_page_on_its_way_is_not_there_after_a_flush() {
    let mut endpoint = Endpoint::new(config(false)).expect("it is possible");
    assert_eq!(endpoint.stage(AT(0), 7 * PAGE_BYTES), AT(3000));
    assert_eq!(endpoint.flush(AT(100)), AT(100), "nothing is changed");
    assert_eq!(endpoint.stage(AT(200), 7 * PAGE_BYTES), AT(3000), "it is still to come");
}

#[test]
fn a_page_that_is_staged_stays_until_it_is_pushed() {
    for policy in [PolicyKind::Lru, PolicyKind::S3Fifo] {
        let mut endpoint = Endpoint::new(EndpointConfig { policy, ..config(false) }).expect("it is possible");
        let address = |page: u64| page * PAGE_BYTES;
        for page in 0..16 {
            endpoint.stage(AT(0), address(page));
        }
        // Twice as many pages as there are frames come and go meanwhile.
        for page in 100..164 {
            endpoint.serve(AT(1_000_000), &access(Transaction::Load, page, Annotation::default()));
        }
        endpoint.release(address(15));
        for page in 0..15 {
            assert!(!endpoint.take(AT(2_000_000), address(page)).from_medium, "{policy:?}: page {page} is there");
        }
        assert_eq!(endpoint.counters().prefetched, 16, "each was read once");
        for page in 200..264 {
            endpoint.serve(AT(3_000_000), &access(Transaction::Load, page, Annotation::default()));
        }
        let held = (0..16).filter(|&page| endpoint.slot_of(page).is_some()).count();
        assert!(policy != PolicyKind::Lru || held == 0, "nothing holds them any more: {held}");
    }
}

#[test]
fn a_line_that_is_staged_takes_what_a_loaded_line_takes_where_the_device_reads_lines() {
    let lines = EndpointConfig { caches_loads: false, buffers_lines: true, reads_lines: true, ..config(false) };
    let mut endpoint = Endpoint::new(lines).expect("it is possible");
    let page = 7 * PAGE_BYTES;
    let load = |address| MemoryAccess::lines(Transaction::Load, address, 1);
    assert_eq!(endpoint.stage(AT(0), page), AT(750), "a part of 256 bytes, and not sixteen");
    assert_eq!((lines.stage_time(), endpoint.stage(AT(100), page)), (SimSpan::from_ns(750), AT(750)), "on its way");
    assert!(endpoint.serve(AT(5000), &load(page + 64)).from_medium, "its page is not there");
    assert!(!endpoint.serve(AT(6000), &load(page)).from_medium && !endpoint.take(AT(7000), page).from_medium);
    // A line on its way is waited for; a store to another line of its page waits for nothing.
    endpoint.stage(AT(10_000), page + 1024);
    assert!(endpoint.serve(AT(10_000), &MemoryAccess::lines(Transaction::Store, page + 128, 1)).at < AT(10_100));
    let waits = endpoint.serve(AT(10_000), &load(page + 1024));
    assert!(waits.from_medium && waits.at >= AT(10_750) && waits.at < AT(10_900), "{waits:?}");
    assert!(endpoint.serve(AT(20_000), &load(page + 128)).from_medium, "stored, and not staged");
    assert_eq!(endpoint.flush(AT(30_000)), AT(30_000 + 3000 + 100_000), "the rest is read first");
    assert_eq!(endpoint.counters().prefetched, 2);
}

#[test]
fn further_lines_of_a_page_come_from_the_register_of_its_die() {
    let geometry = flashyard_flash::Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 64,
        pages_per_block: 32,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    let medium = MediumConfig::Flash(crate::flash::FlashConfig {
        geometry,
        spare: 0.25,
        read: SimSpan::from_us(3),
        program: SimSpan::from_us(100),
        erase: SimSpan::from_ms(1),
        suspend: None,
        channel_rate: ByteRate::from_mb(640),
        buffer_pages: 8,
        collect_below: 0.1,
        collect_always_below: 0.04,
        worn_in: false,
        collection_due: false,
        seed: 1,
    });
    let lines = EndpointConfig { caches_loads: false, buffers_lines: true, reads_lines: true, medium, ..config(false) };
    let mut endpoint = Endpoint::new(lines).expect("it is possible");
    // 64 bytes take 100 ns on a channel.
    assert_eq!(lines.stage_time(), SimSpan::from_ns(3100));
    assert_eq!(endpoint.stage(AT(0), 0), AT(3100));
    assert_eq!(endpoint.stage(AT(0), 64), AT(3200), "sensed once for both");
    assert_eq!(endpoint.stage(AT(10_000), 128), AT(10_100), "the die has it still");
}

#[test]
fn a_push_that_waits_for_the_medium_holds_up_no_line_that_is_there() {
    let mut endpoint = Endpoint::new(config(false)).expect("it is possible");
    endpoint.warm(0, false, true);
    let taken = endpoint.take(AT(0), 7 * PAGE_BYTES);
    assert!(taken.from_medium && taken.at > AT(3000));
    let served = endpoint.serve(AT(0), &access(Transaction::Load, 0, Annotation::default()));
    assert!(served.at < AT(100) && !served.from_medium, "{served:?}");
}

#[test]
fn a_record_of_a_journal_persists_in_one_program_and_a_global_flush_takes_all_changed_pages() {
    let mut endpoint = Endpoint::new(config(true)).expect("it is possible");
    // Twenty changed pages, and the page of the journal, on four units that take 100 us together for a page.
    for page in (0..20).chain([40]) {
        endpoint.warm(page * PAGE_BYTES, true, true);
    }
    let record = endpoint.serve(AT(0), &access(Transaction::Store, 40, NOT_BUFFERED));
    assert_eq!(record.at, AT(10 + 100_000));
    assert_eq!(endpoint.flush(AT(200_000)), AT(200_000 + 20 * 100_000), "the journal's page is clean");
    assert_eq!(endpoint.flush(AT(3_000_000)), AT(3_000_000), "nothing is changed any more");
}

#[test]
fn determinism_alone_leaves_internal_dram_as_it_is_without_annotations() {
    let plain = EndpointConfig { caches_loads: false, buffers_lines: true, ..config(false) };
    let heeding = EndpointConfig { reads_annotations: true, reads_buffering: false, ..plain };
    let run = |config| {
        let mut endpoint = Endpoint::new(config).expect("it is possible");
        let annotation = Annotation { deterministic: true, ..Annotation::default() };
        let ends: Vec<SimTime> = (0..40)
            .map(|page| endpoint.serve(AT(page * 100_000), &access(Transaction::Store, page, annotation)).at)
            .collect();
        (ends, *endpoint.counters())
    };
    assert_eq!(run(heeding), run(plain));
    assert_eq!(run(plain).1.written_back, 8, "all of it is a buffer of stores");
}

#[test]
fn data_that_is_not_announced_begins_in_its_own_part() {
    let mut endpoint = Endpoint::new(config(true)).expect("it is possible");
    // A quarter of 32 pages is for it.
    for page in 0..20 {
        endpoint.warm(page * PAGE_BYTES, true, false);
    }
    let held = (0..20).filter(|&page| endpoint.slot_of(page).is_some()).count();
    assert_eq!((held, endpoint.is_full()), (8, false));
    for page in 100..124 {
        endpoint.warm(page * PAGE_BYTES, false, true);
    }
    assert!(endpoint.is_full() && endpoint.slot_of(19).is_some() && endpoint.slot_of(100).is_some());
}

#[test]
fn sizes_that_are_no_endpoint_are_refused() {
    assert!(Endpoint::new(EndpointConfig { cache_pages: 3, ..config(true) }).is_err());
    assert!(Endpoint::new(EndpointConfig { unannounced_part: 1, ..config(true) }).is_err());
}

proptest! {
    #[test]
    fn the_time_of_all_requests_is_that_of_their_parts(
        reads_annotations: bool, borrows: bool, looks_up: bool,
        requests in prop::collection::vec((0_u64..3_000, 0_u64..80, any::<bool>(), 0_u16..8), 1..300),
    ) {
        let mut endpoint = Endpoint::with_pages(config(reads_annotations), |pages, _| {
            let look_up = looks_up.then(|| Box::new(EveryThird) as Box<dyn LookUp + Send>);
            Ok(PageCache { look_up, ..PageCache::of_policy(PolicyKind::Lru, pages) })
        })
        .expect("it is possible");
        if borrows {
            endpoint = endpoint.borrowing(Lent::new(lent()).expect("it is possible"));
        }
        let (mut now, mut whole) = (SimTime::ZERO, SimSpan::ZERO);
        for (gap, page, store, bits) in requests {
            now += SimSpan::from_ns(gap);
            let operation = if store { Transaction::Store } else { Transaction::Load };
            let annotation = Annotation::of_bits(bits).unwrap_or_default();
            let served = endpoint.serve(now, &access(operation, page, annotation));
            whole += served.at.since(now);
            if let Some(lent) = &endpoint.lent {
                prop_assert!((0..80).all(|page| !lent.holds(page) || endpoint.slot_of(page).is_none()));
            }
        }
        let counters = endpoint.counters();
        prop_assert_eq!(counters.controller + counters.dram + counters.medium, whole);
    }
}
