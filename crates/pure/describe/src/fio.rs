//! Job files of fio as the workload of a scenario.
//!
//! Every busy drive runs all jobs of its file, as if fio ran on each: a clone of a job is a stream of requests with
//! its own depth, and the streams of a drive that run at once share it. Drives of one file get the same requests, as two
//! machines with fio do, unless the file says `randrepeat=0`.

use crate::error::{ScenarioError, value};
use crate::files::Files;
use crate::partial;
use crate::schema::{OneOrMany, Scenario};
use flashyard_kernel::Rng;
use flashyard_measure::{Pacing, RunPlan, Source, StopRule, StreamSpec, Think};
use flashyard_units::{SimSpan, VolumeId};
use flashyard_workload::Interleaved;
use flashyard_workload::fio::{FioError, FioJob, FioJobs, ZipfSums};

/// A job file that was read.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// Its name.
    pub name: String,
    /// Its jobs.
    pub jobs: FioJobs,
}

/// Job files in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobsInWords {
    /// The load that they are.
    pub load: String,
    /// Notes on its figures: jobs whose requests are no whole units.
    pub notes: Vec<String>,
}

/// The job files of the busy drives: drive by drive, and again from the first.
#[derive(Clone, Debug)]
pub struct JobFiles {
    files: Vec<JobFile>,
    busy: u32,
}

impl JobFiles {
    /// The job files that the scenario names, if it names any.
    ///
    /// `busy` drives or volumes run them.
    ///
    /// Errors: a file that is not there, what is wrong in it with its line, a length of the run beside it.
    pub fn load(scenario: &Scenario, busy: u32, files: &dyn Files) -> Result<Option<Self>, ScenarioError> {
        let names = match &scenario.workload.fio {
            None => return Ok(None),
            Some(OneOrMany::One(name)) => std::slice::from_ref(name),
            Some(OneOrMany::Many(names)) => names,
        };
        if names.is_empty() {
            return Err(value(
                "workload.fio",
                "no job file given, give one for all busy drives or one each".to_owned(),
            ));
        }
        if scenario.run.requests_per_drive.is_some() {
            let message = "a job file says when its jobs end; leave it out, or cut the run short with run.measure";
            return Err(value("run.requests_per_drive", message.to_owned()));
        }
        let load = |name: &String| {
            let text = files.text(name).map_err(|message| value("workload.fio", message))?;
            let jobs = FioJobs::parse(&text).map_err(|error| at(name, &error))?;
            Ok(JobFile { jobs, name: name.clone() })
        };
        // A drive that is not busy runs no file.
        let needed = names.iter().take(busy.max(1) as usize);
        Ok(Some(Self { files: needed.map(load).collect::<Result<_, ScenarioError>>()?, busy }))
    }

    /// The files, each once.
    pub fn files(&self) -> &[JobFile] {
        &self.files
    }

    /// The file of a busy drive.
    pub fn of(&self, drive: usize) -> &JobFile {
        &self.files[drive % self.files.len()]
    }

    /// How long to run: until every job has ended, or for `run.measure` if that is shorter. The window of the enclosure
    /// opens when the first job begins to count.
    pub fn plan(&self, scenario: &Scenario) -> RunPlan {
        let stop = scenario.run.measure.map_or(StopRule::StreamEnd, |time| StopRule::After(time.0));
        let warmup = self.files.iter().map(|file| file.warmup(scenario)).min().unwrap_or(SimSpan::ZERO);
        // Each job has figures of its own, over its own time.
        RunPlan { warmup, stop, ends_together: false, depth: None, seed: scenario.seed }
    }

    /// The streams of all busy drives: drive by drive, in the order of [`JobFile::clones`].
    ///
    /// Errors: a job that does not fit the drive.
    pub fn streams(&self, scenario: &Scenario, capacity: u64) -> Result<Vec<StreamSpec>, ScenarioError> {
        let (mut streams, mut sums) = (Vec::new(), ZipfSums::default());
        for drive in 0..self.busy as u16 {
            self.of(drive.into()).add_streams(scenario, capacity, drive, &mut streams, &mut sums)?;
        }
        Ok(streams)
    }

    /// For each busy drive a source that takes turns among its streams.
    pub fn warming_sources(&self, scenario: &Scenario, capacity: u64) -> Result<Vec<Source>, ScenarioError> {
        let mut sums = ZipfSums::default();
        let all = |drive: u16| self.of(drive.into()).warming_source(scenario, capacity, drive, &mut sums);
        (0..self.busy as u16).map(all).collect()
    }

    /// The job files that drive the run, in words.
    pub fn in_words(&self) -> JobsInWords {
        let mut notes = Vec::new();
        for note in self.files.iter().flat_map(|file| &file.jobs.jobs).filter_map(partial::of_job) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        JobsInWords { load: self.load_in_words(), notes }
    }

    fn load_in_words(&self) -> String {
        let busy_drives = self.busy;
        if let [only] = self.files() {
            return format!("fio job file {} on each of {busy_drives} drives{}", only.in_words(), only.notes());
        }
        let files: Vec<String> = self.files.iter().map(|file| file.in_words() + &file.notes()).collect();
        format!("fio job files, given out to {busy_drives} drives in turn: {}", files.join("; "))
    }
}

impl JobFile {
    fn ramp(scenario: &Scenario, job: &FioJob) -> SimSpan {
        scenario.run.warmup.map_or(job.ramp, |time| time.0)
    }

    /// When the first job begins to count.
    fn warmup(&self, scenario: &Scenario) -> SimSpan {
        let of_first_stage = self.jobs.jobs.iter().filter(|job| job.stage == 0);
        let begins = of_first_stage.map(|job| job.start_delay + Self::ramp(scenario, job));
        begins.min().unwrap_or(SimSpan::ZERO)
    }

    /// The clones of all jobs in the order of the file, with their numbers.
    pub fn clones(&self) -> impl Iterator<Item = (usize, &FioJob, u32)> {
        self.jobs.jobs.iter().enumerate().flat_map(|(index, job)| (0..job.clones).map(move |clone| (index, job, clone)))
    }

    fn add_streams(
        &self,
        scenario: &Scenario,
        capacity: u64,
        drive: u16,
        streams: &mut Vec<StreamSpec>,
        sums: &mut ZipfSums,
    ) -> Result<(), ScenarioError> {
        for (index, job, clone) in self.clones() {
            let rng = rng(scenario, "fio", drive, (index, clone));
            let source = self.source(job, capacity, clone, rng, sums)?;
            let depth = job.depth();
            let pacing = if job.is_paced() { Pacing::Timed { depth } } else { Pacing::Closed { depth } };
            let think = Think { span: job.think, requests: job.think_requests };
            streams.push(StreamSpec {
                stage: job.stage,
                delay: job.start_delay,
                ramp: Self::ramp(scenario, job),
                length: job.runtime,
                sample: job.sample,
                think: (job.think > SimSpan::ZERO).then_some(think),
                ..StreamSpec::new(VolumeId::new(drive), source, pacing)
            });
        }
        Ok(())
    }

    fn source(
        &self,
        job: &FioJob,
        capacity: u64,
        clone: u32,
        rng: Rng,
        sums: &mut ZipfSums,
    ) -> Result<Source, ScenarioError> {
        let source = job.source_with(capacity, clone, rng, sums).map_err(|error| at(&self.name, &error))?;
        Ok(Box::new(source))
    }

    /// A drive is warmed by requests like those that are measured, not by these themselves.
    fn warming_source(
        &self,
        scenario: &Scenario,
        capacity: u64,
        drive: u16,
        sums: &mut ZipfSums,
    ) -> Result<Source, ScenarioError> {
        let sources = self.clones().map(|(index, job, clone)| {
            let rng = rng(scenario, "fio.warming", drive, (index, clone));
            self.source(&job.drawn_anew(), capacity, clone, rng, sums)
        });
        Ok(Box::new(Interleaved::new(sources.collect::<Result<_, ScenarioError>>()?)))
    }

    fn in_words(&self) -> String {
        let names: Vec<String> = self.jobs.jobs.iter().map(in_words).collect();
        format!("{} ({})", self.name, names.join(", "))
    }

    fn notes(&self) -> String {
        self.jobs.notes().into_iter().map(|note| format!("; {note}")).collect()
    }
}

fn in_words(job: &FioJob) -> String {
    let clones = if job.clones > 1 { format!("{} x ", job.clones) } else { String::new() };
    format!("{clones}{} of depth {}", job.name, job.depth())
}

/// Random numbers of a clone where fio has none of its own that repeat.
fn rng(scenario: &Scenario, purpose: &str, drive: u16, (index, clone): (usize, u32)) -> Rng {
    Rng::named(scenario.seed, &format!("{purpose}.{drive}.{index}.{clone}"))
}

fn at(file: &str, error: &FioError) -> ScenarioError {
    ScenarioError::Text { origin: file.to_owned(), message: error.to_string() }
}
