//! Runs whose times follow from their parts, and what no run may lose.

use super::*;
use crate::HintFill;
use flashyard_cxl::{Transaction, wire_bytes};
use flashyard_flash::Geometry;
use flashyard_memory::ReadAhead::{Dynamic, Literal, Naive, None as NoHints, Window};
use flashyard_memory::{FlashConfig, MediumConfig};
use flashyard_units::ByteRate;

const NS: fn(u64) -> SimSpan = SimSpan::from_ns;

fn dram() -> DramConfig {
    DramConfig {
        channels: 1,
        banks: 16,
        row_bytes: 8192,
        precharge: NS(15),
        activate: NS(15),
        column: NS(15),
        burst: NS(3),
        controller: NS(10),
    }
}

fn cells() -> ExpanderConfig {
    let medium = MediumConfig::InPlace { pages: 128, units: 8, read: SimSpan::from_us(5), write: SimSpan::from_us(5) };
    ExpanderConfig { dram: dram(), frames: 8, hints: HintFill::Pages, medium }
}

fn flash() -> ExpanderConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 40,
        pages_per_block: 16,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    let medium = MediumConfig::Flash(FlashConfig {
        geometry,
        spare: 0.2,
        read: SimSpan::from_us(3),
        program: SimSpan::from_us(100),
        erase: SimSpan::from_ms(1),
        channel_rate: ByteRate::from_mb(1200),
        buffer_pages: 8,
        collect_below: 0.1,
        collect_always_below: 0.05,
        worn_in: true,
        collection_due: false,
        suspend: None,
        seed: 1,
    });
    ExpanderConfig { dram: dram(), frames: 16, hints: HintFill::Sectors, medium }
}

fn config(kernel: Kernel, beyond: Beyond) -> GpuConfig {
    GpuConfig {
        kernel,
        lines: 8192,
        steps: 20_000,
        cores: 2,
        warps: 4,
        lanes: 1,
        clock: Hertz::new(1_000_000_000),
        cache_bytes: 16 << 10,
        cache_ways: 8,
        cache_hit: NS(20),
        dram: dram(),
        path: PathConfig { link_rate: ByteRate::from_mb(31_500), port: NS(30), switches: 0, switch: SimSpan::ZERO },
        fault: FaultConfig { work: SimSpan::from_us(45), lines: 1024, at_once: 256, link: ByteRate::from_mb(31_500) },
        own_part: 4,
        kept_lines: 64,
        beyond,
        seed: 1,
    }
}

fn run(config: GpuConfig) -> GpuFigures {
    Gpu::new(config).expect("it is possible").run(|_| true).expect("nothing stops it")
}

fn alone(beyond: Beyond, steps: u64) -> GpuFigures {
    run(GpuConfig { cores: 1, warps: 1, steps, ..config(Kernel::Vadd, beyond) })
}

#[test]
fn one_load_takes_the_sum_of_its_parts() {
    // 16 words of a line, and the computing between them, at an instruction a cycle.
    let computes = NS((16.0 / (1.0 - 0.156)) as u64);
    let memory = dram();
    assert_eq!(alone(Beyond::Own, 1).time, computes + memory.row_hit() + memory.activate);
    let rate = ByteRate::from_mb(31_500);
    let wire = |bytes| rate.span_of(wire_bytes(bytes));
    let path = NS(60) + wire(Transaction::Load.request_bytes()) + wire(Transaction::Load.response_bytes());
    assert_eq!(alone(Beyond::Dram, 1).time, computes + path + memory.row_hit() + memory.activate);
    let media = Beyond::Media(cells(), NoHints, DeterministicStores::No);
    let read = SimSpan::from_us(5);
    assert_eq!(alone(media, 1).time, computes + path + read + memory.row_miss());
    let fault = SimSpan::from_us(45) + rate.span_of(65_536);
    assert_eq!(alone(Beyond::Faults, 1).time, computes + fault + memory.row_miss());
}

#[test]
fn every_step_is_taken_once_whatever_the_memory_is() {
    for &kernel in <Kernel as flashyard_units::Named>::ALL {
        let stores = [DeterministicStores::No, DeterministicStores::Yes];
        let media = [NoHints, Naive, Dynamic, Window, Literal].into_iter().flat_map(|hints| {
            stores.into_iter().flat_map(move |stores| [cells(), flash()].map(|of| Beyond::Media(of, hints, stores)))
        });
        let beyond = [Beyond::Own, Beyond::Faults, Beyond::Storage(flash()), Beyond::Dram].into_iter().chain(media);
        for beyond in beyond {
            let config = GpuConfig { steps: 4_000, lanes: 4, ..config(kernel, beyond) };
            let figures = run(config);
            assert_eq!(figures.broken(), Vec::<String>::new(), "{kernel:?} {beyond:?}");
            assert_eq!(figures.loads + figures.stores, 4_000, "{kernel:?} {beyond:?}");
            assert_eq!(figures.cache_hits + figures.loads_beyond, figures.loads, "{kernel:?} {beyond:?}");
            assert_eq!(
                figures.kept as u64,
                figures.port.diverted_lines - figures.port.flushed,
                "{kernel:?} {beyond:?}"
            );
            if let Beyond::Media(_, hints, _) = beyond {
                assert_eq!(figures.port.hints > 0, hints != NoHints);
                let kept = figures.port.diverted + figures.port.kept_hits;
                assert_eq!(
                    figures.expander.loads + figures.expander.stores + kept,
                    figures.loads_beyond + figures.stores + figures.port.flushed
                );
            }
            assert_eq!(run(config), figures, "a run is repeated");
        }
    }
}

#[test]
fn hints_ahead_hide_a_medium_and_kept_stores_its_collection() {
    let time = |kernel, hints, stores| {
        let config = config(kernel, Beyond::Media(flash(), hints, stores));
        run(GpuConfig { kept_lines: 4096, ..config }).time
    };
    let no = DeterministicStores::No;
    // A kernel of loads: programs of flash set the time of one that stores a third.
    assert!(time(Kernel::Sort, Dynamic, no) < time(Kernel::Sort, NoHints, no));
    assert!(time(Kernel::Bfs, Window, DeterministicStores::Yes) < time(Kernel::Bfs, Window, no));
}

#[test]
fn a_gpu_that_cannot_be_is_refused() {
    let base = config(Kernel::Vadd, Beyond::Own);
    for wrong in [
        GpuConfig { lines: 100, ..base },
        GpuConfig { cores: 0, ..base },
        GpuConfig { warps: 0, ..base },
        GpuConfig { lanes: 0, ..base },
        GpuConfig { cores: 64, warps: 32, lanes: 1, ..base },
        GpuConfig { own_part: 0, ..base },
        GpuConfig { fault: FaultConfig { lines: 0, ..base.fault }, ..base },
        GpuConfig { fault: FaultConfig { at_once: 0, ..base.fault }, ..base },
        GpuConfig { cache_ways: 0, ..base },
        GpuConfig {
            beyond: Beyond::Media(ExpanderConfig { frames: 0, ..cells() }, Naive, DeterministicStores::No),
            ..base
        },
    ] {
        assert!(Gpu::new(wrong).is_err());
    }
}

#[test]
fn lines_that_are_kept_at_the_end_are_written_after_its_time() {
    // Half as many warps as the memory queue has entries, and a frame for each line that they have at once.
    let expander = ExpanderConfig { frames: 64, ..flash() };
    let beyond = Beyond::Media(expander, Window, DeterministicStores::Yes);
    let figures = run(GpuConfig { kept_lines: 4096, cores: 2, warps: 8, ..config(Kernel::Vadd, beyond) });
    assert!(figures.port.flushed > 100 && figures.kept > 50, "{:?}, {} kept", figures.port, figures.kept);
}

#[test]
fn a_load_of_a_line_on_its_way_waits_for_it() {
    for beyond in [Beyond::Own, Beyond::Dram, Beyond::Media(cells(), NoHints, DeterministicStores::No)] {
        let mut gpu =
            Gpu::new(GpuConfig { cores: 1, warps: 2, ..config(Kernel::Vadd, beyond) }).expect("it is possible");
        gpu.slots.iter_mut().for_each(|slot| slot.request = Request { line: 70, is_store: false });
        gpu.warps.iter_mut().for_each(|warp| warp.open = 1);
        gpu.access(SimTime::ZERO, 0);
        gpu.access(SimTime::ZERO + NS(1), 1);
        let mut next = Vec::new();
        while let Some(Reverse((time, _, event))) = gpu.events.pop() {
            match event {
                Event::Next(warp) => next.push((time, warp)),
                Event::Answer(place) => gpu.answer(time, place),
                Event::Access(_) | Event::Leave(_) => panic!("none is issued, and one leaves at once"),
            }
        }
        assert!(next.len() == 2 && next[0].0 == next[1].0, "{next:?}");
        assert_eq!((gpu.figures.cache_hits, gpu.figures.loads_beyond), (1, 1));
        let comes = next[0].0;
        gpu.warps[1].open = 1;
        gpu.access(comes, 1);
        assert_eq!(gpu.events.pop().map(|event| event.0.0), Some(comes + NS(20)), "it is there then");
    }
}

/// The end of a step of a warp whose lanes load these lines at once, and its figures.
fn step_of(lines: &[u64], beyond: Beyond) -> (SimTime, GpuFigures) {
    step_at(1_000, lines, beyond)
}

/// Such a step with cores of so many MHz.
fn step_at(mhz: u64, lines: &[u64], beyond: Beyond) -> (SimTime, GpuFigures) {
    let lanes = lines.len() as u32;
    let clock = Hertz::new(mhz * 1_000_000);
    let mut gpu = Gpu::new(GpuConfig { cores: 1, warps: 1, lanes, clock, ..config(Kernel::Sort, beyond) })
        .expect("it is possible");
    for (slot, &line) in gpu.slots.iter_mut().zip(lines) {
        slot.request = Request { line, is_store: false };
    }
    gpu.warps[0].open = lanes;
    gpu.accesses(SimTime::ZERO, 0);
    loop {
        match gpu.events.pop().expect("the warp goes on").0 {
            (time, _, Event::Answer(place)) => gpu.answer(time, place),
            (time, _, Event::Leave(slot)) => gpu.beyond(time, slot),
            (time, _, Event::Next(0)) => return (time, gpu.figures),
            _ => panic!("it is the only warp, and issues nothing"),
        }
    }
}

#[test]
fn a_warp_waits_for_its_slowest_lane() {
    let media = Beyond::Media(cells(), NoHints, DeterministicStores::No);
    for beyond in [Beyond::Own, Beyond::Dram, media] {
        let lines = [0, 700, 1400, 2100];
        let (all, figures) = step_of(&lines, beyond);
        assert_eq!(figures.loads_beyond, 4);
        assert_eq!(all, SimTime::ZERO + figures.longest_load, "the last load has come");
        let first = step_of(&lines[..1], beyond).0;
        assert!(all > first, "{beyond:?}: loads of one bank or of one link follow each other");
    }
    // Units of the medium read beside each other: four reads take little more than one.
    let (one, four) = (step_of(&[0], media).0, step_of(&[0, 700, 1400, 2100], media).0);
    assert!(four.since(SimTime::ZERO) < one.since(SimTime::ZERO) * 2);
}

#[test]
fn no_more_stores_are_kept_than_the_memory_of_the_gpu_has_room_for() {
    let beyond = Beyond::Media(flash(), Window, DeterministicStores::Yes);
    // A 64th of the data are 128 lines.
    let of = |kept_lines| run(GpuConfig { kept_lines, own_part: 64, lanes: 4, ..config(Kernel::Bfs, beyond) });
    assert_eq!(of(4096), of(128));
    assert_ne!(of(128), of(64), "the room is used");
}

#[test]
fn memory_is_asked_for_a_line_a_cycle() {
    for beyond in [Beyond::Own, Beyond::Dram] {
        let lines: Vec<u64> = (0..8).map(|lane| lane * 700).collect();
        let (one, eight) = (step_at(5, &lines[..1], beyond).0, step_at(5, &lines, beyond).0);
        // The last one leaves seven cycles of 200 ns after the first, and finds memory idle.
        let after = eight.since(one);
        assert!((NS(1_350)..=NS(1_450)).contains(&after), "{beyond:?}: {after:?}");
    }
    // A line that is there asks no memory.
    let (end, figures) = step_at(5, &[3; 4], Beyond::Own);
    assert_eq!((end, figures.cache_hits), (step_at(5, &[3], Beyond::Own).0, 3));
}

#[test]
fn warps_overlap_their_waits() {
    // A warp computes for three cycles and waits for more than a hundred.
    let time =
        |warps| run(GpuConfig { cores: 1, warps, lanes: 8, steps: 64, ..config(Kernel::Rsum, Beyond::Dram) }).time;
    let (one, four) = (time(1), time(4));
    let ratio = one.ratio_of(four);
    assert!((3.0..=4.0).contains(&ratio), "four warps wait at once: {ratio}");
}

#[test]
fn coalesced_lanes_make_one_request_a_line() {
    let figures = run(GpuConfig { lanes: 8, steps: 4_000, ..config(Kernel::Vadd, Beyond::Own) });
    assert_eq!(figures.lane_accesses, 8 * (figures.loads + figures.stores));
    assert_eq!((figures.loads_beyond, figures.cache_hits), (figures.loads, 0), "no line is asked for twice");
}

#[test]
fn loads_come_back_in_the_order_in_which_they_left() {
    let media = Beyond::Media(cells(), NoHints, DeterministicStores::No);
    let mut gpu = Gpu::new(GpuConfig { cores: 1, warps: 3, ..config(Kernel::Sort, media) }).expect("it is possible");
    // The first load brings the line of the third one.
    let lines = [0, 700, 1];
    let asked = [0, 10_000, 10_000].map(|ns| SimTime::ZERO + NS(ns));
    gpu.slots.iter_mut().zip(lines).for_each(|(slot, line)| slot.request = Request { line, is_store: false });
    gpu.warps.iter_mut().for_each(|warp| warp.open = 1);
    let mut next = Vec::new();
    for slots in [0..1, 1..3] {
        slots.for_each(|slot: u32| gpu.beyond(asked[slot as usize], slot));
        while let Some(Reverse((time, _, event))) = gpu.events.pop() {
            match event {
                Event::Next(warp) => next.push((time, warp)),
                Event::Answer(place) => gpu.answer(time, place),
                Event::Access(_) | Event::Leave(_) => panic!("none is issued"),
            }
        }
    }
    assert_eq!((next.len(), gpu.figures.loads_beyond), (3, 3));
    let [second, third] = [next[1], next[2]];
    assert_eq!((second.1, third.1), (1, 2), "the third line is there, and the second one read first");
    assert_eq!(third.0, second.0 + NS(1), "an answer a cycle");
    assert!(second.0 > asked[1] + SimSpan::from_us(5), "the medium reads for 5 us");
    // A store goes on its way at once, behind a load that waits.
    gpu.slots[1].request.line = 1400;
    gpu.slots[2].request = Request { line: 70, is_store: true };
    gpu.warps[2].open = 1;
    let later = third.0 + NS(100);
    (1..3).for_each(|slot| gpu.beyond(later, slot));
    let goes_on = gpu.events.into_iter().filter(|event| matches!(event.0.2, Event::Next(_))).map(|event| event.0.0);
    assert_eq!(goes_on.collect::<Vec<_>>(), [later]);
}
