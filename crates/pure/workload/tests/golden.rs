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
        0x4faf_a009_dadc_f00d,
        0xdb0b_2161_e494_72b2,
        0xb7ee_96b2_ec0b_6197,
        0x6f11_4d5a_05f1_04c7,
        0xefdd_0450_10df_7f98,
        0x905b_fa9a_d662_f349,
        0x37e5_567d_cb7f_be6a,
        0x61e2_0671_b5cc_76c9,
        0x1213_ee67_1207_8370,
        0x16c2_28c5_1060_f865,
        0x7efe_f0a4_eb73_12ce,
        0x92b1_8e42_1b9d_b245,
        0x81c3_0714_e6e0_473f,
        0x6a36_a2bc_ca4f_c1ba,
    ];
    let found: Vec<u64> =
        table2::names().map(|name| hash(table2::workload(name, 1 << 42).expect("the table has it"), name)).collect();
    assert_eq!(found, golden, "seed {SEED}, by place in the table: {found:#018x?}");
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
