//! Laws of the drive, and times of lone requests.

use super::*;

fn run(collection: Collection, percent: u32) -> PlaneRun {
    PlaneRun {
        collection,
        percent,
        pages: 4,
        read_share: 0.5,
        requests_per_second: 1000.0,
        overwritten: 1.0,
        warmup: SimSpan::from_ms(200),
        measure: SimSpan::from_secs(4),
        seed: 1,
    }
}

fn figures(run: PlaneRun) -> PlaneFigures {
    carry_out(run, &mut |_| true).expect("the observer lets it go on")
}

#[test]
fn a_lone_read_takes_the_sum_of_its_parts() {
    let alone =
        PlaneRun { read_share: 1.0, requests_per_second: 10.0, overwritten: 0.0, ..run(Collection::Channel, 30) };
    let found = figures(alone);
    // Its four pages are on four channels, with and without parity.
    assert_eq!(found.reads.percentile_us(0.5).round(), (READ + TRANSFER).as_us_f64());
    assert_eq!((found.programmed, found.rebuilt), (0, 0));
    let striped = figures(PlaneRun { collection: Collection::Rotating, ..alone });
    assert_eq!(striped.reads.percentile_us(0.5).round(), 140.0);
}

#[test]
fn a_lone_write_takes_the_sum_of_its_parts_and_writes_the_parity_of_its_stripes() {
    let alone = PlaneRun { read_share: 0.0, requests_per_second: 5.0, overwritten: 0.0, ..run(Collection::Free, 30) };
    let found = figures(alone);
    assert_eq!(found.writes.percentile_us(0.5).round(), (TRANSFER + PROGRAM).as_us_f64());
    assert_eq!(found.programmed, found.host_pages);
    // Four pages of seven: one page of parity, or two where they lie in two stripes, as four of seven places do.
    let striped = figures(PlaneRun { collection: Collection::Rotating, ..alone });
    let parity = (striped.programmed - striped.host_pages) as f64 / striped.host_pages as f64;
    assert!((1.0 / 4.0..2.0 / 4.0).contains(&parity), "{parity}");
}

#[test]
fn every_page_of_data_and_parity_has_a_place_of_its_own() {
    for collection in [Collection::Channel, Collection::Rotating] {
        let drive = Drive::aged(PlaneRun { overwritten: 0.0, ..run(collection, 10) });
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
fn collection_takes_time_from_reads_where_it_blocks_and_next_to_none_where_they_are_rebuilt() {
    let [free, channel, rotating] =
        [Collection::Free, Collection::Channel, Collection::Rotating].map(|collection| figures(run(collection, 80)));
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
fn a_seed_gives_the_same_figures() {
    let twice = [(); 2].map(|()| figures(run(Collection::Rotating, 50)));
    assert_eq!(twice[0].reads.sum_ps(), twice[1].reads.sum_ps());
    assert_eq!(twice[0].programmed, twice[1].programmed);
}
