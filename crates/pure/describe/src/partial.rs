//! Requests that are no whole units of 4 KiB: figures count more bytes than they ask for, and say so.

use flashyard_flash::SLOT_BYTES;
use flashyard_workload::fio::{Extent, FioJob};

const UNIT: u64 = SLOT_BYTES as u64;

/// That figures count more bytes than requests of `size` bytes ask for, where these are no whole units.
pub(crate) fn of_size(size: u64) -> Option<String> {
    let counted = size.next_multiple_of(UNIT);
    (size != counted).then(|| {
        format!(
            "requests of {size} bytes are no whole units of 4 KiB: figures count the units that each touches, {counted} bytes or more"
        )
    })
}

/// The like of a job of fio, by its sizes or by where its requests begin.
pub(crate) fn of_job(job: &FioJob) -> Option<String> {
    let told = of_sizes(job).or_else(|| of_begin(job))?;
    Some(format!("job {}: {told}; the JSON in fio's layout counts the bytes that were asked for", job.name))
}

fn of_sizes(job: &FioJob) -> Option<String> {
    // Sizes by order are those of requests that go on, and of random ones.
    let used = if job.sizes_by_order { [true, true, false] } else { job.operations };
    let used = job.sizes.iter().zip(used).filter(|sizes| sizes.1);
    used.flat_map(|(sizes, _)| {
        // Requests begin at multiples of the smallest size, also where it is the size of none.
        let bounds = [sizes.smallest(), sizes.largest()];
        bounds.into_iter().chain(sizes.split.iter().map(|part| u64::from(part.0)))
    })
    .find_map(of_size)
}

fn of_begin(job: &FioJob) -> Option<String> {
    let clones = if job.clones > 1 { job.offset_increment } else { Extent::Bytes(0) };
    let left_out = if job.random { 0 } else { job.step.unsigned_abs() };
    let places = [job.offset, clones, Extent::Bytes(left_out)];
    let is_within = |place: &Extent| matches!(place, Extent::Bytes(bytes) if !bytes.is_multiple_of(UNIT));
    places.iter().any(is_within).then(|| {
        "requests begin within units of 4 KiB: figures count the units that each touches, all of their bytes".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_workload::fio::FioJobs;

    #[test]
    fn jobs_in_parts_of_units_are_told() {
        let told = |options: &str| {
            let text = format!("[small]\nrw=randread\nsize=1g\n{options}\n");
            of_job(&FioJobs::parse(&text).expect(options).jobs[0]).unwrap_or_default()
        };
        for (options, part) in [
            ("bs=512", "job small: requests of 512 bytes are no whole units of 4 KiB"),
            ("bs=512", "4096 bytes or more"),
            ("bsrange=512-8k", "requests of 512 bytes"),
            ("bssplit=4k/50:6k/50", "requests of 6144 bytes"),
            ("rw=write\nbs=4k,1k", "requests of 1024 bytes"),
            ("bs=4k,1k\nbs_is_seq_rand", "requests of 1024 bytes"),
            ("offset=1000", "begin within units of 4 KiB"),
            ("rw=read:1k", "begin within units of 4 KiB"),
        ] {
            assert!(told(options).contains(part), "{options}: {}", told(options));
        }
        for options in ["bs=64k", "bs=4k,1k", "offset=8k", "rw=randread:8\nbs=4k"] {
            assert_eq!(told(options), "", "{options}");
        }
    }
}
