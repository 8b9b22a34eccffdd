//! Same seed, same requests, on every machine: hashes of the first 10,000 requests of each kind of generator.
//!
//! A hash that changes moves every result made with that generator. Read why before accepting a new one.

use flashyard_blk::Operation;
use flashyard_kernel::Rng;
use flashyard_units::SimSpan;
use flashyard_workload::fio::FioJobs;
use flashyard_workload::{AddressPattern, Arrival, RequestSource, SizeMix, Synthetic, SyntheticSpec, table2};

const SEED: u64 = 1;

fn hash(spec: SyntheticSpec, name: &str) -> u64 {
    hash_of(Synthetic::new(spec, Rng::named(SEED, name)).expect("the description is valid"))
}

fn hash_of(mut source: impl RequestSource) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for _ in 0..10_000 {
        let record = source.next_request().expect("time does not end here").expect("it has no end");
        let request = record.request;
        let is_write = u64::from(request.operation == Operation::Write);
        for value in [record.arrival.as_ps(), request.offset_bytes, u64::from(request.len_bytes), is_write] {
            hash = (hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
    }
    hash
}

#[test]
fn the_published_workloads_keep_their_requests() {
    let golden: [u64; 14] = [
        0x032e_d876_2f6e_b63a,
        0xaf4b_2e8c_563d_acd8,
        0xe1a5_3cfa_910d_427b,
        0xc1be_a1a4_7c28_4058,
        0x9539_95c5_4c9b_3433,
        0xe48e_662a_10f0_8447,
        0xa5f4_7c91_55f0_442d,
        0x003f_e5b2_7fff_8181,
        0x2a07_8b0f_8904_b8c2,
        0x3761_c5c6_d979_bd94,
        0x1dff_d347_2dab_1923,
        0x7d6d_6315_0900_3bb9,
        0x7a13_0702_a4e8_ab9a,
        0x4ed5_652f_75d1_8c9f,
    ];
    for (name, golden) in table2::names().zip(golden) {
        let found = hash(table2::workload(name, 1 << 40).expect("the table has it"), name);
        assert_eq!(found, golden, "{name} (seed {SEED}): {found:#018x}");
    }
}

#[test]
fn patterns_and_arrivals_keep_their_requests() {
    // Odd sizes on purpose: a span that is no multiple of the alignment, an alignment that is no power of two.
    let spec = |address, arrival| SyntheticSpec {
        read_share: 0.7,
        read_size: SizeMix::Mean(37.0 * 1024.0),
        write_size: SizeMix::Weighted(vec![(4096, 0.5), (8192, 0.3), (12_288, 0.7)]),
        address,
        span_bytes: (1 << 30) + 12_345,
        alignment_bytes: 12_288,
        arrival,
        requests: None,
    };
    let poisson = Arrival::Poisson { per_second: 50_000.0 };
    let fixed = Arrival::Fixed { per_second: 3e5 };
    let bursts = Arrival::Bursts { per_second: 1e5, on: SimSpan::from_ms(1), off: SimSpan::from_ms(1) };
    let runs = AddressPattern::Runs { go_on: 0.8, starts: Box::new(AddressPattern::Uniform) };
    let cases = [
        ("uniform, Poisson", spec(AddressPattern::Uniform, poisson), 0xe17a_1afe_1676_fb45),
        ("sequential, fixed", spec(AddressPattern::Sequential { start: 777 }, fixed), 0x70f3_e206_47c4_3404),
        ("Zipf, Poisson", spec(AddressPattern::Zipf { theta: 0.99 }, poisson), 0x7b31_fd15_0a85_9150),
        ("uniform, bursts", spec(AddressPattern::Uniform, bursts), 0xd1e1_de60_7b24_b167),
        ("runs, Poisson", spec(runs, poisson), 0x6b04_4d22_2797_ec0e),
    ];
    for (name, spec, golden) in cases {
        let found = hash(spec, "x");
        assert_eq!(found, golden, "{name} (seed {SEED}): {found:#018x}");
    }
}

/// Requests of fio itself are in `fio_orders.rs`; these are the numbers that fio does not say.
#[test]
fn jobs_of_fio_keep_their_requests() {
    let cases = [
        ("rw=randread\nrandrepeat=0", 0x2af7_26d2_1fd1_0a2b),
        (
            "rw=randrw\nrwmixread=70\nrandrepeat=0\nbssplit=4k/60:8k/40,4k/50:16k/50\nrandom_distribution=zipf:1.2",
            0xf7d6_c15b_51f3_0826,
        ),
        (
            "rw=randtrim\nrandom_distribution=zoned:60/10:40/90\nrate_iops=1000\nrate_process=poisson",
            0x9b7c_8d7a_129c_1aa9,
        ),
        ("rw=rw\nbs=64k\nrate=100m,", 0x2838_18c3_b6c6_33a6),
    ];
    for (options, golden) in cases {
        let job =
            FioJobs::parse(&format!("[job]\nsize=80%\noffset=10%\n{options}\n")).expect("it is good").jobs.remove(0);
        let found = hash_of(job.source(1 << 40, 0, Rng::named(SEED, "x")).expect("it fits"));
        assert_eq!(found, golden, "{options} (seed {SEED}): {found:#018x}");
    }
}
