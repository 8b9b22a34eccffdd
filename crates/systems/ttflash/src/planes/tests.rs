//! Laws of the drive, and times of lone requests.

use super::*;

/// Requests of four pages, half of them reads. \[A\]
const LOAD: PlaneLoad = PlaneLoad { read_pages: 4, write_pages: 4, read_share: 0.5, requests_per_second: 1000.0 };

fn run(collection: Collection) -> PlaneRun {
    PlaneRun { collection, load: LOAD, warmup: SimSpan::from_ms(200), measure: SimSpan::from_secs(4), seed: 1 }
}

fn figures(run: PlaneRun) -> PlaneFigures {
    carry_out(run, &mut |_| true).expect("the observer lets it go on")
}

#[test]
fn a_lone_read_takes_the_sum_of_its_parts() {
    let load = PlaneLoad { read_share: 1.0, requests_per_second: 10.0, ..LOAD };
    let alone = PlaneRun { load, ..run(Collection::Channel) };
    let found = figures(alone);
    // Its four pages are on four channels, with and without parity.
    assert_eq!(found.reads.percentile_us(0.5).round(), (READ + TRANSFER).as_us_f64());
    assert_eq!((found.programmed, found.rebuilt), (0, 0));
    let striped = figures(PlaneRun { collection: Collection::Rotating, ..alone });
    assert_eq!(striped.reads.percentile_us(0.5).round(), 142.0);
}

#[test]
fn a_lone_write_takes_the_sum_of_its_parts_and_writes_the_parity_of_its_stripes() {
    let load = PlaneLoad { read_share: 0.0, requests_per_second: 5.0, ..LOAD };
    let alone = PlaneRun { load, ..run(Collection::Free) };
    let found = figures(alone);
    assert_eq!(found.writes.percentile_us(0.5).round(), (TRANSFER + PROGRAM).as_us_f64());
    assert_eq!(found.programmed, found.host_pages);
    // Four pages of seven: one page of parity, or two where they lie in two stripes, as four of seven places do.
    let mut drive = Drive::aged(PlaneRun { collection: Collection::Rotating, ..alone });
    // Nothing is worn, and nothing collects.
    let logical = drive.data / (DATA * PLANES);
    drive.planes.iter_mut().for_each(|plane| plane.map = PlaneMap::aged(SHAPE, logical, 0, 0));
    let striped = live(drive, &mut |_| true).expect("the observer lets it go on");
    let parity = (striped.programmed - striped.host_pages) as f64 / striped.host_pages as f64;
    assert!((1.0 / 4.0..2.0 / 4.0).contains(&parity), "{parity}");
}

#[test]
fn every_page_of_data_and_parity_has_a_place_of_its_own() {
    for collection in [Collection::Channel, Collection::Rotating] {
        let drive = Drive::aged(run(collection));
        let mut places: Vec<(u32, u32)> = (0..drive.data).map(|page| drive.place_of(page)).collect();
        if drive.is_striped() {
            for stripe in 0..drive.data / DATA {
                let members: Vec<u32> = (0..DATA).map(|member| drive.place_of(stripe * DATA + member).0).collect();
                assert!(!members.contains(&drive.parity_place(stripe).0));
                places.push(drive.parity_place(stripe));
            }
        }
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), count);
    }
}

#[test]
fn an_aged_drive_has_as_much_data_as_nothing_and_is_about_to_collect() {
    for collection in [Collection::Channel, Collection::Rotating] {
        let drive = Drive::aged(run(collection));
        let pages = f64::from(CHANNELS * PLANES * SHAPE.blocks * SHAPE.pages);
        let data = f64::from(drive.data) * if drive.is_striped() { 8.0 / 7.0 } else { 1.0 };
        assert!((data / pages - HALF_AGED).abs() < 1e-4, "{}", data / pages);
        assert!(drive.planes.iter().all(|plane| plane.map.erased() == LOW + 1));
    }
}

#[test]
fn collection_takes_time_from_reads_where_it_blocks_and_next_to_none_where_they_are_rebuilt() {
    let [free, channel, rotating] =
        [Collection::Free, Collection::Channel, Collection::Rotating].map(|collection| figures(run(collection)));
    let tail = |figures: &PlaneFigures| figures.reads.percentile_us(0.99);
    assert!(tail(&channel) > 3.0 * tail(&free), "{} {}", tail(&channel), tail(&free));
    assert!(tail(&rotating) < tail(&channel) / 2.0, "{} {}", tail(&rotating), tail(&channel));
    assert!(rotating.rebuilt > 0 && rotating.rebuilding <= 7 * rotating.rebuilt);
    assert!(channel.programmed > channel.host_pages, "something was moved");
    // Half of four thousand requests are reads, and nearly all of them end.
    for found in [&free, &channel, &rotating] {
        assert!((1900..2100).contains(&found.reads.count()), "{}", found.reads.count());
    }
}

#[test]
fn collection_waits_for_commands_of_its_channel_until_it_must() {
    let mut drive = Drive::aged(run(Collection::Channel));
    let begun = |drive: &Drive| drive.planes.iter().filter(|plane| plane.collects).count();
    drive.sense(SimTime::ZERO, 0, Command::None);
    while drive.planes[0].map.erased() > LOW {
        drive.planes[0].map.write(0);
    }
    drive.want_collection(0);
    drive.planes[0].at = None;
    drive.collect(SimTime::ZERO, 0);
    assert_eq!(begun(&drive), 0, "a read is under way");
    while drive.planes[0].map.erased() > VERY_LOW {
        drive.planes[0].map.write(0);
    }
    drive.collect(SimTime::ZERO, 0);
    assert_eq!(begun(&drive), 1, "next to nothing is erased");
}

#[test]
fn no_more_reads_are_under_way_than_the_queue_takes() {
    let mut drive = Drive::aged(run(Collection::Free));
    drive.run.load.read_share = 1.0;
    (0..OUTSTANDING + 3).for_each(|_| drive.arrive(SimTime::ZERO));
    assert_eq!((drive.reading, drive.outside.len()), (OUTSTANDING, 3));
}

#[test]
fn a_seed_gives_the_same_figures() {
    let twice = [(); 2].map(|()| figures(run(Collection::Rotating)));
    assert_eq!(twice[0].reads.sum_ps(), twice[1].reads.sum_ps());
    assert_eq!(twice[0].programmed, twice[1].programmed);
}
