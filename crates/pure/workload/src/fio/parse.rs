//! From the text of a job file to its jobs.

use super::error::FioError;
use super::job::FioJob;
use super::options::{Treatment, treatment};
use super::popular::Distribution;
use super::text::{self, Section, Setting};
use super::value::{self, KbBase};

/// The jobs of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioJobs {
    /// The options of `[global]` as they are written.
    pub globals: Vec<(String, String)>,
    /// Jobs in the order of the file, at least one.
    pub jobs: Vec<FioJob>,
    /// Options that were accepted without effect, each once, in the order of the file.
    pub ignored: Vec<String>,
}

impl FioJobs {
    /// Reads the text of a job file.
    ///
    /// Errors: the first option that is unknown, refused, or has a value that cannot be, and options that exclude
    /// each other, with line and name.
    pub fn parse(text: &str) -> Result<Self, FioError> {
        let mut found = Self::default();
        let mut template = FioJob::default();
        let (mut group, mut stage) = (0, 0);
        for section in text::sections(text)? {
            if section.name == "global" {
                found.fill(&mut template, &section)?;
                found.globals.extend(written(&section));
                continue;
            }
            let name = section.name.clone();
            let mut job = FioJob { name: name.clone(), section: name, line: section.line, ..template.clone() };
            found.fill(&mut job, &section)?;
            job.options = written(&section).collect();
            let is_later = !found.jobs.is_empty();
            // A stage is a group of its own, as in fio.
            group += u32::from((job.new_group || job.stonewall) && is_later);
            stage += u32::from(job.stonewall && is_later);
            (job.group, job.stage) = (group, stage);
            job.number = 1 + found.jobs.iter().map(|job| job.clones).sum::<u32>();
            check(&job)?;
            found.jobs.push(job);
        }
        if found.jobs.is_empty() {
            return Err(FioError::new(1, "[job]", "the file has no job, write a section besides [global]"));
        }
        Ok(found)
    }

    /// Gives `job` the options of `section`.
    fn fill(&mut self, job: &mut FioJob, section: &Section) -> Result<(), FioError> {
        let wrong = |setting: &Setting, message| FioError::new(setting.line, &setting.name, message);
        // fio reads the meaning of suffixes before the numbers that have them.
        for setting in section.settings.iter().filter(|setting| setting.name == "kb_base") {
            let text = setting.value.as_deref().unwrap_or_default().trim_end();
            let base = value::number(text, 1000, 1024).ok().filter(|base| [1000, 1024].contains(base));
            job.base = KbBase(base.ok_or_else(|| wrong(setting, format!("{text:?} is no base, give 1000 or 1024")))?);
        }
        for setting in &section.settings {
            match treatment(setting.line, &setting.name)? {
                Treatment::Supported => job.apply(setting).map_err(|message| wrong(setting, message))?,
                _ if self.ignored.contains(&setting.name) => {}
                _ => self.ignored.push(setting.name.clone()),
            }
        }
        Ok(())
    }

    /// Streams on each drive.
    pub fn streams(&self) -> usize {
        self.jobs.iter().map(|job| job.clones as usize).sum()
    }

    /// Notes on how the file is run: options without effect, engines that wait.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.ignored.is_empty() {
            notes.push(format!("without effect here: {}", self.ignored.join(", ")));
        }
        let waiting = self.jobs.iter().filter(|job| job.waits() && job.iodepth > 1);
        let waiting: Vec<&str> = waiting.map(|job| job.name.as_str()).collect();
        if !waiting.is_empty() {
            let names = waiting.join(", ");
            notes.push(format!("{names}: one request in flight, because the ioengine (psync if none is named) waits"));
        }
        notes
    }
}

fn written(section: &Section) -> impl Iterator<Item = (String, String)> + '_ {
    let pair =
        |setting: &Setting| (setting.name.clone(), setting.value.clone().unwrap_or_default().trim_end().to_owned());
    section.settings.iter().map(pair)
}

/// Options that need or exclude each other.
fn check(job: &FioJob) -> Result<(), FioError> {
    let wrong =
        |option: &str, message: &str| Err(FioError::new(job.line, option, format!("job {}: {message}", job.name)));
    if job.time_based && job.runtime.is_none() {
        return wrong("time_based", "it has no end, give runtime");
    }
    if job.trims_and_writes() && !job.random && job.step < 0 {
        return wrong("rw", "trimwrite does not go backwards: fio trims one place for ever");
    }
    if job.distribution != Distribution::Random && !job.random {
        return wrong("random_distribution", "the job is sequential, give rw=randread, randwrite, randrw or randtrim");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::job::{Extent, Pace};
    use super::super::lengths::BlockSizes;
    use super::*;
    use flashyard_units::SimSpan;
    use proptest::prelude::*;

    fn one(options: &str) -> FioJob {
        FioJobs::parse(&format!("[job]\n{options}\n")).expect("it is good").jobs.remove(0)
    }

    fn error(text: &str) -> String {
        FioJobs::parse(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn globals_hold_for_the_jobs_after_them_and_jobs_override_them() {
        let text = "[global]\nbs=8k\nrw=randread\n[a]\n[b]\nbs=16k\n[global]\niodepth=4\nioengine=libaio\n[c]\n";
        let found = FioJobs::parse(text).expect("it is good");
        let names: Vec<&str> = found.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(found.jobs.iter().all(|job| job.random));
        assert_eq!(found.jobs[1].sizes[0], BlockSizes::fixed(16_384));
        assert_eq!(found.jobs[2].sizes[0], BlockSizes::fixed(8192));
        assert_eq!((found.jobs[0].depth(), found.jobs[2].depth()), (1, 4));
        assert_eq!(found.jobs[1].options, [("bs".to_owned(), "16k".to_owned())]);
    }

    #[test]
    fn values_for_each_direction_fall_where_fio_puts_them() {
        let fixed = |sizes: [u32; 3]| sizes.map(BlockSizes::fixed);
        assert_eq!(one("bs=8k").sizes, fixed([8192; 3]));
        assert_eq!(one("bs=8k,32k").sizes, fixed([8192, 32_768, 32_768]));
        assert_eq!(one("bs=8k,32k,").sizes, fixed([8192, 32_768, 4096]));
        assert_eq!(one("bs=,8k").sizes, fixed([4096, 8192, 8192]));
        assert_eq!(one("rate=1m,").rates, [Some(Pace::Bytes(1 << 20)), None, None]);
        assert_eq!(one("rate_iops=5,6,7").rates, [5, 6, 7].map(|requests| Some(Pace::Requests(requests))));
    }

    #[test]
    fn size_splits_fill_what_is_missing() {
        let split = |options: &str| one(options).sizes[0].split.clone();
        assert_eq!(split("bssplit=4k/50:8k/:16k"), [(8192, 25), (16_384, 25), (4096, 50)]);
        assert_eq!(split("bssplit=4k:8k:16k/0"), [(4096, 33), (8192, 33), (16_384, 33)]);
        // A range stays when a single size follows it, as in fio.
        let range = one("bsrange=4k-12k\nbs=64k");
        assert_eq!((range.sizes[0].smallest(), range.sizes[0].largest()), (4096, 12_288));
        let both = one("bssplit=2k/50:4k/50,4k/90:8k/10");
        assert_ne!(both.sizes[0], both.sizes[1]);
    }

    #[test]
    fn ends_and_extents_are_kept_as_written() {
        let job =
            one("size=20%\noffset=1g\nruntime=500ms\ntime_based\nramp_time=20ms\nthinktime=30\nthinktime_blocks=4");
        assert_eq!((job.size, job.offset), (Some(Extent::Percent(20)), Extent::Bytes(1 << 30)));
        assert_eq!((job.runtime, job.ramp), (Some(SimSpan::from_ms(500)), SimSpan::from_ms(20)));
        assert_eq!((job.think, job.think_requests), (SimSpan::from_us(30), 4));
        assert_eq!(one("rwmixwrite=30").read_percent, 70);
        assert_eq!(one("kb_base=1000\nsize=1m").size, Some(Extent::Bytes(1_000_000)));
        assert_eq!(one("size=1m\nkb_base=1000").size, Some(Extent::Bytes(1_000_000)));
        let normal = one("rw=randread\nrandom_distribution=normal:25");
        assert_eq!(normal.distribution, Distribution::Normal { percent: 25.0, center: None });
    }

    #[test]
    fn a_new_group_or_stage_begins_where_a_job_says_so() {
        let text = "[a]\nnew_group\n[b]\n[c]\nnew_group\n[d]\nstonewall\n[e]\n";
        let jobs = FioJobs::parse(text).expect("it is good").jobs;
        let numbers: Vec<(u32, u32)> = jobs.iter().map(|job| (job.group, job.stage)).collect();
        assert_eq!(numbers, [(0, 0), (0, 0), (1, 0), (2, 1), (2, 1)]);
    }

    #[test]
    fn options_without_effect_are_named_once() {
        let found = FioJobs::parse("[global]\nunlink=1\niodepth=8\n[a]\nthread\nunlink=0\n").expect("good");
        assert_eq!(found.ignored, ["unlink", "thread"]);
        assert_eq!(
            found.notes(),
            [
                "without effect here: unlink, thread",
                "a: one request in flight, because the ioengine (psync if none is named) waits",
            ]
        );
    }

    #[test]
    fn every_error_names_line_option_and_what_is_accepted() {
        let golden = [
            ("[a]\niodeph=4", "line 2: iodeph: is not supported; did you mean iodepth?"),
            (
                "[a]\n\nverify=crc32c",
                "line 3: verify: is not supported: data is not carried, so there is nothing to verify: leave it out",
            ),
            (
                "[a]\nrw=readd",
                "line 2: rw: \"readd\" is not supported, give one of read, write, trim, rw, readwrite, randread, \
                 randwrite, randtrim, randrw, trimwrite, randtrimwrite",
            ),
            (
                "[a]\nbs=4x",
                "line 2: bs: \"4x\" cannot be read, give a number of bytes with at most one suffix of k, m, g, t, p \
                 (or kb, mb, ...; kib, mib, ...)",
            ),
            ("[a]\nbs=0", "line 2: bs: \"0\" is outside its range, give 1 byte to less than 4g"),
            (
                "[a]\nbs=1k,2k,3k,4k",
                "line 2: bs: \"1k,2k,3k,4k\" has 4 parts, give at most three: reads, writes, trims",
            ),
            (
                "[a]\nbssplit=4k/50:8k/20",
                "line 2: bssplit: the percentages of \"4k/50:8k/20\" add up to 70, give 100, or leave one out to fill \
                 the rest",
            ),
            ("[a]\nrwmixread=200", "line 2: rwmixread: 200 is outside its range, give a whole number from 0 to 100"),
            ("[a]\niodepth=0", "line 2: iodepth: 0 is outside its range, give a whole number from 1 to 65536"),
            ("[a]\nsize", "line 2: size: has no value, write option=value"),
            ("[a]\nsize=0", "line 2: size: 0 is outside its range, give more than 0"),
            ("[a]\ndirect=0", "line 2: direct: there is no page cache here, give direct=1 or leave it out"),
            (
                "[a]\nrandom_distribution=zipf:1",
                "line 2: random_distribution: 1 is outside its range, give an exponent above 0 and below 10, but not 1",
            ),
            (
                "[a]\nrandom_distribution=zoned:50/20",
                "line 2: random_distribution: zones \"50/20\" cannot be read, give access/size:access/size:..., each \
                 of both adding up to 100 percent",
            ),
            (
                "[a]\nruntime=soon",
                "line 2: runtime: \"soon\" cannot be read, give a time, for example 30s, 500ms, 20us or 1m30s",
            ),
            ("[a]\nkb_base=512", "line 2: kb_base: \"512\" is no base, give 1000 or 1024"),
            ("[a]\ntime_based=yes", "line 2: time_based: \"yes\" cannot be read, give 1, 0 or the option alone"),
            ("[a]\ntime_based", "line 1: time_based: job a: it has no end, give runtime"),
            (
                "[a]\nrw=trimwrite:-4k",
                "line 1: rw: job a: trimwrite does not go backwards: fio trims one place for ever",
            ),
            ("[global]\nbs=4k", "line 1: [job]: the file has no job, write a section besides [global]"),
            (
                "[a]\nrandom_distribution=zipf:1.2",
                "line 1: random_distribution: job a: the job is sequential, give rw=randread, randwrite, randrw or \
                 randtrim",
            ),
        ];
        for (text, expected) in golden {
            assert_eq!(error(text), expected);
        }
        assert!(
            error("[a]\nqqqqqqqqqq=1")
                .starts_with("line 2: qqqqqqqqqq: is not supported; supported are allrandrepeat, ")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_jobs_or_an_error_with_one_of_its_lines(text in "(\\[?[a-z]{0,6}\\]?=?\\PC{0,6}\n){0,8}") {
            match FioJobs::parse(&text) {
                Ok(found) => prop_assert!(!found.jobs.is_empty()),
                Err(error) => {
                    let error = error.to_string();
                    let line = error.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
                    let line = line.and_then(|(line, _)| line.parse().ok()).unwrap_or(0);
                    prop_assert!((1..=text.lines().count().max(1)).contains(&line), "{error}");
                }
            }
        }

        #[test]
        fn any_value_of_a_supported_option_is_taken_or_refused_with_its_line(
            choice in 0_usize..200, text in "[0-9a-z/:,.%-]{0,14}|\\PC{0,8}",
        ) {
            let names: Vec<&str> = super::super::options::options().map(|option| option.0).collect();
            let name = names[choice % names.len()];
            match FioJobs::parse(&format!("[a]\n{name}={text}\n")) {
                Ok(found) => prop_assert_eq!(found.jobs.len(), 1),
                Err(error) => prop_assert!(error.to_string().starts_with("line "), "{error}"),
            }
        }
    }
}
